-- Joins what was read of the datasets, and removes episodes that have left them.
-- places_whole: whether each row of title.episode could be read; otherwise an episode that is not there may be in a damaged one.
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
DELETE FROM imdb_episodes e
WHERE %(places_whole)s AND NOT EXISTS (SELECT FROM found f WHERE f.imdb_id = e.imdb_id)
