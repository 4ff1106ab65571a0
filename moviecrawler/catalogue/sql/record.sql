-- Finds the rows that outcomes are of: by title where one was claimed, else by the id that was asked for or found.
-- outcomes: JSON array of {n, site, title_id, asked, got}.
SELECT o.n, s.title_id, s.site_id, s.failures, s.last_success, s.next_due, s.boost_due, t.imdb_id, t.year
FROM jsonb_to_recordset(%(outcomes)s) AS o (n integer, site site, title_id bigint, asked text, got text)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT 1 AS place, s.* FROM title_sites s WHERE s.site = o.site AND s.title_id = o.title_id
        UNION ALL
        SELECT 2, s.* FROM title_sites s WHERE s.site = o.site AND s.site_id = o.got
        UNION ALL
        SELECT 3, s.* FROM title_sites s WHERE s.site = o.site AND s.site_id = o.asked
    ) found
    ORDER BY place LIMIT 1
) s
JOIN titles t ON t.title_id = s.title_id
ORDER BY o.n
