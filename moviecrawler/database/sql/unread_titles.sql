-- Titles of the catalogue with an IMDb id whose record of IMDb is not stored yet, as items with the
-- fields that `catalogue.matching` compares.
-- titles: array of ids.
SELECT t.title_id, (to_jsonb(t) || jsonb_build_object(
    'site', 'imdb',
    'site_id', t.imdb_id,
    'url', NULL,
    'season_count', nullif((
        SELECT count(DISTINCT e.season) FROM imdb_episodes e
        WHERE t.kind = 'series' AND e.series_imdb_id = t.imdb_id AND e.season > 0), 0),
    'scores', CASE  -- for their votes; their value is not compared
        WHEN t.votes IS NOT NULL
        THEN jsonb_build_array(
            jsonb_build_object('kind', 'imdb', 'value', 1, 'count', greatest(t.votes, 1)))
        ELSE '[]'
    END))::text
FROM titles t
WHERE t.title_id = ANY (%(titles)s)
    AND t.imdb_id IS NOT NULL AND t.title IS NOT NULL
    AND t.kind <> 'episode'  -- nor null
    AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id AND r.site = 'imdb')
ORDER BY t.title_id
