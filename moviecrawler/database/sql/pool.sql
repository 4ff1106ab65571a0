-- The records of titles, older ones too, as items with the fields that `catalogue.matching`
-- compares. A title with an IMDb id but no record of IMDb yet gets one with a negative record_id.
-- titles: array of ids.
SELECT r.record_id,
    pooled.title_id,
    r.placed_by_hand,
    r.newer_id,
    (to_jsonb(r) - '{facets,keywords,interests,related}'::text[] || jsonb_build_object(
        'imdb_id', coalesce(r.imdb_id, (
            SELECT t.imdb_id FROM title_sites s JOIN titles t USING (title_id)
            WHERE r.site <> 'imdb' AND s.site = r.site AND s.site_id = r.site_id
                AND s.id_verified)),
        'other_titles', coalesce(r.facets -> 'other_titles', '[]'),
        'credits', (
            SELECT coalesce(jsonb_agg(
                jsonb_build_object('name', c.name, 'role', c.role, 'position', c.position)
                ORDER BY c.position), '[]')
            FROM credits c
            WHERE c.record_id = r.record_id AND c.role IN ('director', 'creator')),
        'scores', (  -- for their votes
            SELECT coalesce(jsonb_agg(
                jsonb_build_object('kind', s.kind, 'value', s.value, 'count', s.count)), '[]')
            FROM scores s
            WHERE s.record_id = r.record_id AND r.site = 'imdb' AND s.kind = 'imdb')))::text,
    r.site
FROM (
    SELECT s.record_id, s.title_id FROM records s WHERE s.title_id = ANY (%(titles)s)
    UNION ALL
    SELECT older.record_id, s.title_id
    FROM records s
    JOIN records older ON older.newer_id = s.record_id
    WHERE s.title_id = ANY (%(titles)s)
) pooled
JOIN records r USING (record_id)
UNION ALL
SELECT -t.title_id,
    t.title_id,
    false,
    NULL,
    (to_jsonb(t) || jsonb_build_object(
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
        END))::text,
    'imdb'
FROM titles t
WHERE t.title_id = ANY (%(titles)s)
    AND t.imdb_id IS NOT NULL AND t.title IS NOT NULL AND t.kind IS NOT NULL
    AND t.kind <> 'episode'
    AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id AND r.site = 'imdb')
ORDER BY 6, 1
