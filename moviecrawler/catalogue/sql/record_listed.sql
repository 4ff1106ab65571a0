-- Stores the ids that a list or sitemap names; the source `list` wins over `sitemap`.
-- Parameters: site; rows (JSON array of {site_id, key, year}); source.
INSERT INTO listed_ids AS s (site, site_id, key, year, source)
SELECT %(site)s, r.site_id, r.key, r.year, %(source)s
FROM jsonb_to_recordset(%(rows)s) AS r (site_id text, key text, year integer)
ON CONFLICT (site, site_id) DO UPDATE
SET key = excluded.key,
    year = coalesce(excluded.year, s.year),
    source = least(s.source, excluded.source)
