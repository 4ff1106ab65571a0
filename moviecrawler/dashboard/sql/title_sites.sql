-- Where a title is on each site, and when it is due.
-- Arguments: id.
SELECT s.site, s.state::text, s.site_id, s.id_source::text, s.id_verified, s.last_success,
    s.next_due, s.boost_due, m.reason
FROM title_sites s LEFT JOIN misses m ON m.site = s.site AND m.site_id = s.site_id
WHERE s.title_id = %(id)s ORDER BY s.site
