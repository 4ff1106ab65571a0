-- The titles of the catalogue that have an IMDb id, with what is compared of them.
SELECT t.imdb_id, t.title, t.original_title, t.kind, t.year, t.end_year, t.runtime_minutes, t.votes_popularity,
    nullif((SELECT count(DISTINCT e.season) FROM imdb_episodes e
        WHERE t.kind = 'series' AND e.series_imdb_id = t.imdb_id AND e.season > 0), 0) AS season_count,
    r.directors, r.votes, o.titles AS other_titles
FROM titles t
LEFT JOIN LATERAL (
    SELECT ARRAY(SELECT c.name FROM credits c WHERE c.record_id = r.record_id AND c.name IS NOT NULL
            AND c.role = CASE WHEN t.kind = 'series' THEN 'creator' ELSE 'director' END::credit_role ORDER BY c.position) AS directors,
        (SELECT s.count FROM scores s WHERE s.record_id = r.record_id AND s.kind = 'imdb') AS votes
    FROM records r WHERE r.title_id = t.title_id AND r.site = 'imdb'
) r ON true
LEFT JOIN LATERAL (
    SELECT array_agg(name) AS titles
    FROM records r
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY[r.title, r.original_title]) AS name WHERE r.site <> 'imdb'
        UNION ALL SELECT e.entry ->> 'title' FROM jsonb_array_elements(r.other_titles) AS e (entry)
    ) known
    WHERE r.title_id = t.title_id AND name IS NOT NULL
) o ON true
WHERE t.imdb_id IS NOT NULL AND t.title IS NOT NULL
