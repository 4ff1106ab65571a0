-- Where a title is on each site, when it is due, and until when it is claimed (null: not).
-- Arguments: id.
SELECT s.site::text, s.state::text, s.site_id, s.id_source::text, s.id_verified, s.last_success,
    s.next_due, s.boost_due,
    CASE WHEN s.claimed_until > now() THEN s.claimed_until END AS claimed_until, m.reason
FROM title_sites s LEFT JOIN misses m ON m.site = s.site AND m.site_id = s.site_id
WHERE s.title_id = %(id)s ORDER BY s.site
