-- Joins what was read of the datasets, makes the table what they say, and notes which version of them it holds. Unchanged rows are not
-- touched. Returns how many episodes were added, changed and removed.
-- places_whole, names_whole, ratings_whole: whether each row of title.episode, title.basics and title.ratings could be read. Otherwise
-- what is not there may be in a damaged row, and what was known stays. source; version; now.
ANALYZE places;
ANALYZE names;
ANALYZE ratings;
CREATE TEMPORARY TABLE found ON COMMIT DROP AS
SELECT p.imdb_id, p.series_imdb_id, p.season, p.episode, n.title, n.year, r.rating, r.votes
FROM (SELECT DISTINCT ON (imdb_id) * FROM places ORDER BY imdb_id) p
LEFT JOIN (SELECT DISTINCT ON (imdb_id) * FROM names ORDER BY imdb_id) n USING (imdb_id)
LEFT JOIN (SELECT DISTINCT ON (imdb_id) * FROM ratings ORDER BY imdb_id) r USING (imdb_id);
DROP TABLE places, names, ratings;
ANALYZE found;

LOCK TABLE imdb_episodes IN SHARE ROW EXCLUSIVE MODE;  -- readers go on; another import waits
CREATE TEMPORARY TABLE counted (added bigint, changed bigint, removed bigint) ON COMMIT DROP;
WITH removed AS (
    DELETE FROM imdb_episodes e
    WHERE %(places_whole)s AND NOT EXISTS (SELECT FROM found f WHERE f.imdb_id = e.imdb_id)
    RETURNING 1
), changed AS (
    UPDATE imdb_episodes e
    SET series_imdb_id = f.series_imdb_id, season = f.season, episode = f.episode,
        title = f.title, year = f.year, rating = f.rating, votes = f.votes
    FROM (
        SELECT f.imdb_id, f.series_imdb_id, f.season, f.episode,
            CASE WHEN %(names_whole)s OR f.title IS NOT NULL THEN f.title ELSE o.title END AS title,
            CASE WHEN %(names_whole)s OR f.title IS NOT NULL THEN f.year ELSE o.year END AS year,
            CASE WHEN %(ratings_whole)s OR f.votes IS NOT NULL THEN f.rating ELSE o.rating END AS rating,
            CASE WHEN %(ratings_whole)s OR f.votes IS NOT NULL THEN f.votes ELSE o.votes END AS votes
        FROM found f JOIN imdb_episodes o USING (imdb_id)
    ) f
    WHERE e.imdb_id = f.imdb_id AND (e.series_imdb_id, e.season, e.episode, e.title, e.year, e.rating, e.votes)
        IS DISTINCT FROM (f.series_imdb_id, f.season, f.episode, f.title, f.year, f.rating, f.votes)
    RETURNING 1
), added AS (
    INSERT INTO imdb_episodes (imdb_id, series_imdb_id, season, episode, title, year, rating, votes)
    SELECT f.imdb_id, f.series_imdb_id, f.season, f.episode, f.title, f.year, f.rating, f.votes
    FROM found f
    WHERE NOT EXISTS (SELECT FROM imdb_episodes e WHERE e.imdb_id = f.imdb_id)
    ORDER BY f.imdb_id
    RETURNING 1
)
INSERT INTO counted
SELECT (SELECT count(*) FROM added), (SELECT count(*) FROM changed), (SELECT count(*) FROM removed);

INSERT INTO imports (source, version, rows_done, finished_at)
VALUES (%(source)s, %(version)s, (SELECT count(*) FROM imdb_episodes), %(now)s)
ON CONFLICT (source) DO UPDATE
SET version = excluded.version, rows_done = excluded.rows_done, finished_at = excluded.finished_at;
ANALYZE imdb_episodes;

TABLE counted
