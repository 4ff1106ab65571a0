-- A title is found by its exact text among any number that have its words, and matches to review are read in their order.
-- A hash holds a text of any length, and only ever equals.
CREATE INDEX titles_exact ON titles USING hash (lower(title));
DROP INDEX title_matches_review;
CREATE INDEX title_matches_review ON title_matches (score DESC, title_id, site, site_id) WHERE decision = 'review';

-- As before, and it takes its turn with imports, which lock the same rows in another order.
CREATE OR REPLACE FUNCTION boost_titles(imdb_ids text[], weight real DEFAULT 1, at timestamptz DEFAULT now()) RETURNS bigint
LANGUAGE sql AS $$
    SELECT lock_titles();
    SELECT boost_title_ids(ARRAY(SELECT title_id FROM titles WHERE imdb_id = ANY (imdb_ids)), weight, at)
$$;
