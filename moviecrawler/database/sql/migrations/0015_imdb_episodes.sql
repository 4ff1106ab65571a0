-- additive
-- The episodes of IMDb's datasets, as `scrapy catalogue import episodes` last found them: one row each, none of it from a page.
-- An episode that is also a record of its own, as `scrapy crawl imdb -a ids=…` stores it, stands here too.
CREATE TABLE imdb_episodes (
    imdb_id        text PRIMARY KEY CHECK (imdb_id ~ '^tt[0-9]{7,}$'),
    series_imdb_id text NOT NULL CHECK (series_imdb_id ~ '^tt[0-9]{7,}$'),
    season         integer CHECK (season >= 0),  -- null: of no season
    episode        integer CHECK (episode >= 0),  -- its number in the season
    title          text CHECK (title <> ''),  -- null: title.basics has no row of it
    year           integer CHECK (year BETWEEN 1870 AND 2100),
    rating         numeric CHECK (rating BETWEEN 1 AND 10),  -- null: fewer than five votes
    votes          integer CHECK (votes > 0),
    CHECK ((rating IS NULL) = (votes IS NULL))
);
CREATE INDEX imdb_episodes_place ON imdb_episodes (series_imdb_id, season, episode);
