-- Rivals of titles: others of the same name whose page on the site is not known, so that a page may
-- be theirs.
-- Parameters: titles (array of ids); site; most (rivals of a title, the most popular first).
SELECT t.title_id AS of_title, o.title_id
FROM titles t CROSS JOIN LATERAL (
    SELECT o.title_id FROM titles o
    WHERE lower(o.title) = lower(t.title) AND o.title_id <> t.title_id AND o.imdb_id IS NOT NULL
        AND (o.kind = 'series') = (t.kind = 'series')
        -- A series may begin while another of that name runs, so the years say less.
        AND (abs(o.year - t.year) <= 4
            OR t.kind = 'series' AND o.year IS NOT NULL AND t.year IS NOT NULL)
        AND NOT EXISTS (
            SELECT FROM title_sites s
            WHERE s.title_id = o.title_id AND s.site = %(site)s AND s.id_verified)
    ORDER BY o.popularity DESC, o.title_id LIMIT %(most)s
) o WHERE t.title_id = ANY (%(titles)s)
