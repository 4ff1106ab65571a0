-- Adds the titles of a list of what is popular that are not known. site; rows: JSON array of {n, site_id, title, year, kind}; source.
WITH new AS (
    SELECT nextval(pg_get_serial_sequence('titles', 'title_id')) AS title_id, r.*
    FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text, title text, year integer, kind title_kind)
    WHERE r.title IS NOT NULL AND r.kind IS NOT NULL
        AND NOT EXISTS (SELECT FROM titles t WHERE t.imdb_id = r.site_id)
), added AS (
    INSERT INTO titles (title_id, imdb_id, title, kind, year)
    SELECT title_id, site_id, title, kind, year FROM new
)
INSERT INTO title_sites (title_id, site, site_id, id_source, id_verified)
SELECT n.title_id, s.site, CASE WHEN s.site = 'imdb' THEN n.site_id END,
    CASE WHEN s.site = 'imdb' THEN %(source)s::id_source END, s.site = 'imdb'
FROM new n CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
