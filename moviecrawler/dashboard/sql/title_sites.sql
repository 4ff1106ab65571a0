-- Where a title is on each site, and when it is due. id.
SELECT s.site::text, s.state::text, s.site_id, s.id_source::text, s.id_confidence, s.id_verified, s.last_success,
    s.next_due, s.failures, s.boost, s.boost_due, s.claimed_until, m.outcome::text AS miss, m.reason, m.checked_at
FROM title_sites s LEFT JOIN misses m ON m.site = s.site AND m.site_id = s.site_id
WHERE s.title_id = %(id)s ORDER BY s.site
