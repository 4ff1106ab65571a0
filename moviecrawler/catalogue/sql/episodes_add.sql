-- Adds the episodes that are new.
INSERT INTO imdb_episodes (imdb_id, series_imdb_id, season, episode, title, year, rating, votes)
SELECT f.imdb_id, f.series_imdb_id, f.season, f.episode, f.title, f.year, f.rating, f.votes
FROM found f
WHERE NOT EXISTS (SELECT FROM imdb_episodes e WHERE e.imdb_id = f.imdb_id)
ORDER BY f.imdb_id
