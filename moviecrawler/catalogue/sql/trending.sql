-- Boosts what a list of what is popular names, by its place: the first one's weight is 1, the last one's almost 0. Titles of IMDb are added
-- when they are not known. site; rows: JSON array of {n, site_id, title, year, kind}; count: of them; source; now.
WITH new AS (
    SELECT nextval(pg_get_serial_sequence('titles', 'title_id')) AS title_id, r.*
    FROM jsonb_to_recordset(%(rows)s) AS r (site_id text, title text, year integer, kind title_kind)
    WHERE %(site)s = 'imdb' AND r.title IS NOT NULL AND r.kind IS NOT NULL
        AND NOT EXISTS (SELECT FROM titles t WHERE t.imdb_id = r.site_id)
), added AS (
    INSERT INTO titles (title_id, imdb_id, title, kind, year) SELECT title_id, site_id, title, kind, year FROM new
)
INSERT INTO title_sites (title_id, site, site_id, id_source, id_verified)
SELECT n.title_id, s.site, CASE s.site WHEN 'imdb' THEN n.site_id END, CASE s.site WHEN 'imdb' THEN %(source)s::id_source END, s.site = 'imdb'
FROM new n CROSS JOIN unnest(enum_range(NULL::site)) AS s (site);

SELECT boost_title_ids(array_agg(s.title_id), (1 - r.n::real / %(count)s)::real, %(now)s)
FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text)
JOIN title_sites s ON s.site = %(site)s AND s.site_id = r.site_id
GROUP BY r.n
