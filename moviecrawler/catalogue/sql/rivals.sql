-- Titles of the same name as others, which a page of the site may be of as well: not those whose page there is known.
-- titles: array of ids; site; most: for each title, the most popular.
SELECT t.title_id AS of_title, o.title_id
FROM titles t CROSS JOIN LATERAL (
    SELECT o.title_id FROM titles o
    WHERE lower(o.title) = lower(t.title) AND o.title_id <> t.title_id AND o.imdb_id IS NOT NULL AND (o.kind = 'series') = (t.kind = 'series')
        -- One series may begin in the run of another.
        AND (abs(o.year - t.year) <= 4 OR t.kind = 'series' AND o.year IS NOT NULL AND t.year IS NOT NULL)
        AND NOT EXISTS (SELECT FROM title_sites s WHERE s.title_id = o.title_id AND s.site = %(site)s AND s.id_verified)
    ORDER BY o.popularity DESC, o.title_id LIMIT %(most)s
) o WHERE t.title_id = ANY (%(titles)s)
