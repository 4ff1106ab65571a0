-- What TMDB says is watched now counts beside the votes that a title has ever had: the larger of the two is its popularity.
-- A popularity that a person gave stands above both.

ALTER TABLE titles
    ADD COLUMN votes_popularity real,  -- 0 to 100, from IMDb's votes; null: not known
    ADD COLUMN tmdb_popularity  real;  -- 0 to 100, from TMDB's daily export; null: not known

UPDATE titles SET votes_popularity = popularity WHERE popularity_source = 'votes';
UPDATE titles SET tmdb_popularity = popularity WHERE popularity_source = 'tmdb';

-- The popularity of a title after an import. `given` is the import's, of that source; `known` is what stands there.
CREATE FUNCTION popularity_of(
    given real, given_source popularity_source, known real, known_source popularity_source, votes real, tmdb real
) RETURNS real LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN given_source = 'given' THEN coalesce(given, known)
                WHEN known_source = 'given' THEN known
                ELSE coalesce(greatest(votes, tmdb), known) END
$$;
