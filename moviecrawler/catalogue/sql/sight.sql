-- Keeps what a list or sitemap names; what any list names is that list's. site; rows: JSON array of {site_id, key, title, year}; source; now.
INSERT INTO sightings AS s (site, site_id, key, title, year, source, seen_at)
SELECT %(site)s, r.site_id, r.key, r.title, r.year, %(source)s, %(now)s
FROM jsonb_to_recordset(%(rows)s) AS r (site_id text, key text, title text, year integer)
ON CONFLICT (site, site_id) DO UPDATE SET key = excluded.key, title = coalesce(excluded.title, s.title),
    year = coalesce(excluded.year, s.year), seen_at = excluded.seen_at, source = least(s.source, excluded.source)
