-- additive
-- Series in the catalogue: when they ended, and TMDB's ids of them, by which its export finds them.

ALTER TABLE titles ADD COLUMN end_year integer CHECK (end_year BETWEEN 1870 AND 2100);  -- of a series; null: it runs, or nobody said
CREATE INDEX titles_tmdb_series_id ON titles (tmdb_series_id) WHERE tmdb_series_id IS NOT NULL;
