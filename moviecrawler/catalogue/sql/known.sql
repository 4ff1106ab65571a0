-- The facts of titles that are compared, among them the directors (of a series, creators) and votes
-- of IMDb's record, and other names.
-- titles: array of ids; null for all titles with an IMDb id.
SELECT t.title_id,
    t.imdb_id,
    t.title,
    t.original_title,
    t.kind,
    t.year,
    t.end_year,
    t.runtime_minutes,
    nullif((
        SELECT count(DISTINCT e.season) FROM imdb_episodes e
        WHERE t.kind = 'series' AND e.series_imdb_id = t.imdb_id AND e.season > 0
    ), 0) AS season_count,
    ARRAY(SELECT c.name FROM credits c
        WHERE c.record_id = imdb.record_id AND c.name IS NOT NULL
            AND c.role = CASE WHEN t.kind = 'series' THEN 'creator' ELSE 'director' END
        ORDER BY c.position) AS directors,
    coalesce(
        (SELECT s.count FROM scores s WHERE s.record_id = imdb.record_id AND s.kind = 'imdb'),
        t.votes
    ) AS votes,
    ARRAY(SELECT DISTINCT name FROM records r CROSS JOIN LATERAL (
            SELECT unnest(ARRAY[r.title, r.original_title]) AS name
            UNION ALL
            SELECT o.title FROM other_titles o WHERE o.record_id = r.record_id
        ) known
        WHERE r.title_id = t.title_id AND name NOT IN (t.title, coalesce(t.original_title, t.title))
        ORDER BY name LIMIT 200) AS other_titles
FROM titles t LEFT JOIN records imdb ON imdb.title_id = t.title_id AND imdb.site = 'imdb'
WHERE t.title IS NOT NULL
    AND (t.title_id = ANY (%(titles)s::bigint[])
        OR %(titles)s::bigint[] IS NULL AND t.imdb_id IS NOT NULL)
