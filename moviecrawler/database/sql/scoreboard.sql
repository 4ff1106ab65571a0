-- The rows of the scoreboard: one a title, but for seasons and episodes, which have views of their
-- own. Null: the site has no such value. Where sites differ on the title itself, IMDb goes before
-- Rotten Tomatoes before Metacritic. Columns that end in _100 are scores on a scale of 0 to 100.
-- The view `scoreboard` of Postgres and the table of the embedded database are made of this one
-- SELECT.
SELECT t.title_id,
    coalesce(i.title, r.title, m.title) AS title,
    coalesce(i.year, r.year, m.year) AS year,
    coalesce(i.kind, r.kind, m.kind) AS kind,
    coalesce(i.runtime_minutes, r.runtime_minutes, m.runtime_minutes) AS runtime_minutes,
    coalesce(i.site_id, r.imdb_id, m.imdb_id) AS imdb_id,
    i.url AS imdb_url,
    m.site_id AS metacritic_id,
    m.url AS metacritic_url,
    r.site_id AS rottentomatoes_id,
    r.url AS rottentomatoes_url,
    s.imdb_rating,
    s.imdb_votes,
    round(s.imdb_rating * 10, 1) AS imdb_rating_100,
    s.metascore,
    s.metascore_reviews,
    s.metascore AS metascore_100,
    s.metacritic_user_score,
    s.metacritic_user_ratings,
    round(s.metacritic_user_score * 10, 1) AS metacritic_user_score_100,
    s.tomatometer,
    s.tomatometer_reviews,
    s.tomatometer AS tomatometer_100,
    s.popcornmeter,
    s.popcornmeter_ratings,
    s.popcornmeter AS popcornmeter_100,
    round(s.critics_mean, 1) AS critics_mean,  -- of Metascore and Tomatometer, 0 to 100
    round(s.users_mean, 1) AS users_mean,  -- of IMDb, Metacritic's users and Popcornmeter, 0 to 100
    -- Critics and users count the same, however many scores each has.
    round(
        coalesce((s.critics_mean + s.users_mean) / 2, s.critics_mean, s.users_mean), 1
    ) AS overall,
    i.scraped_at AS imdb_fetched_at,
    m.scraped_at AS metacritic_fetched_at,
    r.scraped_at AS rottentomatoes_fetched_at,
    i.list_name AS imdb_list_name,
    i.list_rank AS imdb_list_rank,
    (SELECT min(n) FROM (
        SELECT i.list_rank AS n UNION ALL SELECT m.list_rank UNION ALL SELECT r.list_rank
    ) AS ranks) AS best_list_rank,
    t.matched_by,
    -- Of a series at themoviedb.org/tv/<id>, of everything else at themoviedb.org/movie/<id>.
    CASE
        WHEN coalesce(i.kind, r.kind, m.kind) = 'series' THEN t.tmdb_series_id
        ELSE t.tmdb_id
    END AS tmdb_id
FROM titles t
LEFT JOIN records i ON i.title_id = t.title_id AND i.site = 'imdb'
LEFT JOIN records r ON r.title_id = t.title_id AND r.site = 'rottentomatoes'
LEFT JOIN records m ON m.title_id = t.title_id AND m.site = 'metacritic'
LEFT JOIN (
    SELECT title_id,
        max(value) FILTER (WHERE kind = 'imdb') AS imdb_rating,
        max(count) FILTER (WHERE kind = 'imdb') AS imdb_votes,
        max(value) FILTER (WHERE kind = 'metascore') AS metascore,
        max(count) FILTER (WHERE kind = 'metascore') AS metascore_reviews,
        max(value) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_score,
        max(count) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_ratings,
        max(value) FILTER (WHERE kind = 'tomatometer') AS tomatometer,
        max(count) FILTER (WHERE kind = 'tomatometer') AS tomatometer_reviews,
        max(value) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter,
        max(count) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter_ratings,
        avg(normalised) FILTER (WHERE kind IN ('metascore', 'tomatometer')) AS critics_mean,
        avg(normalised) FILTER (WHERE kind NOT IN ('metascore', 'tomatometer')) AS users_mean
    FROM title_scores GROUP BY title_id
) s ON s.title_id = t.title_id
WHERE coalesce(i.kind, r.kind, m.kind) NOT IN ('season', 'episode')
