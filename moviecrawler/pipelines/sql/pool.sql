-- The records of titles, as items that have what `catalogue.matching` compares. titles: array of ids.
SELECT r.record_id, r.title_id, r.placed_by_hand, jsonb_build_object(
    'site', r.site, 'site_id', r.site_id, 'url', r.url, 'imdb_id', r.imdb_id, 'title', r.title,
    'original_title', r.original_title, 'kind', r.kind, 'year', r.year, 'release_date', r.release_date,
    'runtime_minutes', r.runtime_minutes, 'season', r.season, 'episode', r.episode,
    'credits',
    (SELECT coalesce(jsonb_agg(jsonb_build_object('name', c.name, 'role', c.role, 'position', c.position)
                               ORDER BY c.position), '[]')
     FROM credits c WHERE c.record_id = r.record_id AND c.role = 'director'))::text
FROM records r
WHERE r.title_id = ANY (%(titles)s)
ORDER BY r.site, r.record_id
