-- Keeps what a list or sitemap names; what any list names is that list's. site; rows: JSON array of {site_id, key, year}; source.
INSERT INTO sightings AS s (site, site_id, key, year, source)
SELECT %(site)s, r.site_id, r.key, r.year, %(source)s FROM jsonb_to_recordset(%(rows)s) AS r (site_id text, key text, year integer)
ON CONFLICT (site, site_id) DO UPDATE
SET key = excluded.key, year = coalesce(excluded.year, s.year), source = least(s.source, excluded.source)
