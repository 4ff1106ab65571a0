-- Ends an import of episodes: notes which version of the datasets the table holds.
INSERT INTO imports (source, version, rows_done, finished_at)
VALUES (%(source)s, %(version)s, (SELECT count(*) FROM imdb_episodes), %(now)s)
ON CONFLICT (source) DO UPDATE
SET version = excluded.version, rows_done = excluded.rows_done, finished_at = excluded.finished_at;
ANALYZE imdb_episodes
