-- The titles of the embedded database, but seasons and episodes, as items with the fields that
-- `catalogue.matching` compares.
SELECT m.id, json_object(
    'site', m.site,
    'site_id', m.site_id,
    'url', m.url,
    'imdb_id', m.imdb_id,
    'title', m.title,
    'original_title', m.original_title,
    'kind', m.kind,
    'year', m.year,
    'end_year', m.end_year,
    'release_date', m.release_date,
    'season_count', m.season_count,
    'runtime_minutes', m.runtime_minutes,
    'scraped_at', m.scraped_at,
    'other_titles', (
        SELECT json_group_array(json_object(
            'title', t.title, 'country', t.country, 'language', t.language, 'kind', t.kind))
        FROM other_titles t WHERE t.site = m.site AND t.site_id = m.site_id),
    'credits', (
        SELECT json_group_array(json_object(
            'name', c.name, 'role', c.role, 'position', c.position))
        FROM credits c
        WHERE c.site = m.site AND c.site_id = m.site_id AND c.role IN ('director', 'creator')),
    'scores', iif(
        m.imdb_rating IS NULL,
        json('[]'),
        json_array(json_object('kind', 'imdb', 'value', m.imdb_rating, 'count', m.imdb_votes))))
FROM movies m
WHERE m.kind NOT IN ('season', 'episode')
ORDER BY m.site, m.list_name IS NULL, m.list_name, m.list_rank IS NULL, m.list_rank, m.id
