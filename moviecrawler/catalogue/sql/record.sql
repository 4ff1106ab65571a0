-- Finds the rows that outcomes are of: the claimed title's while it has one of the two ids; else the title's that has one by
-- now; else the claimed title's, of which they say nothing any more.
-- outcomes: JSON array of {n, site, title_id, asked, got}; without ids, the claimed title's row is meant whatever its id is. now.
SELECT o.n, s.title_id, s.site_id, s.failures, s.last_success, s.next_due, s.boost_due, t.imdb_id, t.kind, t.year,
    airs(t.title_id, %(now)s) AS airs
FROM jsonb_to_recordset(%(outcomes)s) AS o (n integer, site site, title_id bigint, asked text, got text)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT CASE WHEN s.site_id IN (o.asked, o.got) THEN 1 ELSE 4 END AS place, s.* FROM title_sites s
        WHERE s.site = o.site AND s.title_id = o.title_id
        UNION ALL
        SELECT 2, s.* FROM title_sites s WHERE s.site = o.site AND s.site_id = o.got
        UNION ALL
        SELECT 3, s.* FROM title_sites s WHERE s.site = o.site AND s.site_id = o.asked
    ) found
    ORDER BY place LIMIT 1
) s
JOIN titles t ON t.title_id = s.title_id
ORDER BY o.n
