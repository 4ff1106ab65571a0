-- Makes `imdb_episodes` equal to `found`, without writing unchanged rows. Returns how many were
-- added, changed and removed.
-- whole: whether every row of the datasets could be read. Otherwise a missing value may be in a
-- damaged row, so the known one is kept.
ANALYZE found;
LOCK TABLE imdb_episodes IN SHARE ROW EXCLUSIVE MODE;  -- readers go on; another import waits
UPDATE found f
SET title = coalesce(f.title, e.title),
    year = coalesce(f.year, e.year),
    rating = coalesce(f.rating, e.rating),
    votes = coalesce(f.votes, e.votes)
FROM imdb_episodes e WHERE e.imdb_id = f.imdb_id AND NOT %(whole)s;
WITH removed AS (
    DELETE FROM imdb_episodes e
    WHERE %(whole)s AND NOT EXISTS (SELECT FROM found f WHERE f.imdb_id = e.imdb_id)
    RETURNING 1
), changed AS (
    UPDATE imdb_episodes e
    SET series_imdb_id = f.series_imdb_id,
        season = f.season,
        episode = f.episode,
        title = f.title,
        year = f.year,
        rating = f.rating,
        votes = f.votes
    FROM found f WHERE e.imdb_id = f.imdb_id AND ROW(e.*) IS DISTINCT FROM ROW(f.*)
    RETURNING 1
), added AS (
    INSERT INTO imdb_episodes
    SELECT * FROM found f
    WHERE NOT EXISTS (SELECT FROM imdb_episodes e WHERE e.imdb_id = f.imdb_id)
    RETURNING 1
)
SELECT (SELECT count(*) FROM added) AS added,
    (SELECT count(*) FROM changed) AS changed,
    (SELECT count(*) FROM removed) AS removed
