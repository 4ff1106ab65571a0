-- Version 8: titles are matched by other rules. Keys of records and of listed ids are made anew,
-- and records whose keys are others are matched again, by `database/titles.py`, after the last
-- step.
CREATE TABLE stale_keys ();

-- TMDB's id of several titles was an unsure one, of which a popularity went to any of them.
UPDATE titles SET tmdb_id = NULL
WHERE tmdb_id IN (SELECT tmdb_id FROM titles GROUP BY tmdb_id HAVING count(*) > 1);
UPDATE titles SET tmdb_series_id = NULL
WHERE tmdb_series_id IN (
    SELECT tmdb_series_id FROM titles GROUP BY tmdb_series_id HAVING count(*) > 1
);
