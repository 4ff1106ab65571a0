-- Begins an import of IMDb's episodes: a temporary table for what is read of each dataset.
SET LOCAL statement_timeout = 0;  -- of millions of rows
SET LOCAL idle_in_transaction_session_timeout = '10min';  -- while rows that nobody wants are read
SET LOCAL work_mem = '64MB';
CREATE TEMPORARY TABLE places (imdb_id text, series_imdb_id text, season integer, episode integer) ON COMMIT DROP;
CREATE TEMPORARY TABLE names (imdb_id text, title text, year integer) ON COMMIT DROP;
CREATE TEMPORARY TABLE ratings (imdb_id text, rating numeric, votes integer) ON COMMIT DROP
