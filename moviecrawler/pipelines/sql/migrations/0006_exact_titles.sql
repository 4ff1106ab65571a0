-- A title is found by its exact text among any number that have its words, and matches to review are read in their order.
-- A hash holds a text of any length, and only ever equals.
CREATE INDEX titles_exact ON titles USING hash (lower(title));
DROP INDEX title_matches_review;
CREATE INDEX title_matches_review ON title_matches (score DESC, title_id, site, site_id) WHERE decision = 'review';
