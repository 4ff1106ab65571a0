-- Version 4: one schema for SQLite and Postgres. Records are numbered as before, and each is a
-- title of its own until titles are matched again.

DROP VIEW IF EXISTS episode_scores;
DROP VIEW IF EXISTS season_scores;
DROP VIEW IF EXISTS parts;
DROP VIEW IF EXISTS items;
DROP TABLE scoreboard;
DROP INDEX credits_person;
DROP INDEX offers_provider;
ALTER TABLE scores RENAME TO old_scores;
ALTER TABLE score_history RENAME TO old_score_history;
ALTER TABLE credits RENAME TO old_credits;
ALTER TABLE people RENAME TO old_people;
ALTER TABLE offers RENAME TO old_offers;
ALTER TABLE related RENAME TO old_related;
ALTER TABLE awards RENAME TO old_awards;
ALTER TABLE other_titles RENAME TO old_other_titles;
ALTER TABLE misses RENAME TO old_misses;
ALTER TABLE aliases RENAME TO old_aliases;
ALTER TABLE state RENAME TO old_state;

CREATE TABLE sites (
    "site" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "authority" INTEGER NOT NULL,
    "main_list" TEXT NOT NULL,
    PRIMARY KEY (site)
) WITHOUT ROWID;
CREATE TABLE score_kinds (
    "kind" TEXT NOT NULL,
    "site" TEXT NOT NULL REFERENCES sites,
    "name" TEXT NOT NULL,
    "lowest" INTEGER NOT NULL,
    "highest" INTEGER NOT NULL,
    "average_highest" INTEGER,
    "audience" INTEGER NOT NULL,
    "rates_seasons" INTEGER NOT NULL,
    "shown" INTEGER,
    "value_column" TEXT,
    "count_column" TEXT,
    PRIMARY KEY (kind)
) WITHOUT ROWID;
CREATE TABLE titles (
    "title_id" INTEGER NOT NULL,
    "matched_by" TEXT NOT NULL DEFAULT '[]',
    "imdb_id" TEXT,
    "tmdb_id" INTEGER,
    "tmdb_series_id" INTEGER,
    "title" TEXT,
    "original_title" TEXT,
    "kind" TEXT,
    "year" INTEGER CHECK (year BETWEEN 1870 AND 2100),
    "end_year" INTEGER CHECK (end_year BETWEEN 1870 AND 2100),
    "runtime_minutes" INTEGER CHECK (runtime_minutes > 0),
    "series_title_id" INTEGER,
    "season" INTEGER,
    "episode" INTEGER,
    "popularity" REAL NOT NULL DEFAULT 0 CHECK (popularity BETWEEN 0 AND 100),
    "popularity_source" TEXT,
    "votes" INTEGER CHECK (votes >= 0),
    PRIMARY KEY (title_id)
);
CREATE INDEX titles_series_title_id
    ON titles (series_title_id, season, episode) WHERE series_title_id IS NOT NULL;
CREATE INDEX titles_tmdb_id
    ON titles (tmdb_id) WHERE tmdb_id IS NOT NULL;
CREATE INDEX titles_tmdb_series_id
    ON titles (tmdb_series_id) WHERE tmdb_series_id IS NOT NULL;
CREATE INDEX titles_popularity
    ON titles (popularity, title_id);
CREATE TABLE records (
    "record_id" INTEGER NOT NULL,
    "title_id" INTEGER REFERENCES titles,
    "newer_id" INTEGER REFERENCES records,
    "placed_by_hand" INTEGER NOT NULL DEFAULT false,
    "updated_at" TEXT NOT NULL,
    "match_keys" TEXT,
    "site" TEXT NOT NULL REFERENCES sites,
    "site_id" TEXT NOT NULL CHECK (site_id <> ''),
    "url" TEXT NOT NULL,
    "title" TEXT NOT NULL CHECK (title <> ''),
    "kind" TEXT NOT NULL,
    "imdb_id" TEXT,
    "original_title" TEXT,
    "title_type" TEXT,
    "year" INTEGER,
    "end_year" INTEGER,
    "release_date" TEXT,
    "runtime_minutes" INTEGER,
    "genres" TEXT NOT NULL DEFAULT '[]',
    "countries" TEXT NOT NULL DEFAULT '[]',
    "languages" TEXT NOT NULL DEFAULT '[]',
    "certificate" TEXT,
    "plot" TEXT,
    "poster_url" TEXT,
    "poster_width" INTEGER,
    "poster_height" INTEGER,
    "keywords" TEXT NOT NULL DEFAULT '[]',
    "interests" TEXT NOT NULL DEFAULT '[]',
    "taglines" TEXT NOT NULL DEFAULT '[]',
    "consensus" TEXT,
    "external_ids" TEXT NOT NULL DEFAULT '{}',
    "imdb_top250_rank" INTEGER,
    "imdb_top250_tv_rank" INTEGER,
    "critic_review_count" INTEGER,
    "popularity_rank" INTEGER,
    "series_id" TEXT,
    "series_title" TEXT,
    "season" INTEGER,
    "episode" INTEGER,
    "season_count" INTEGER,
    "episode_count" INTEGER,
    "source" TEXT NOT NULL,
    "unknown_fields" TEXT NOT NULL DEFAULT '[]',
    "scraped_at" TEXT NOT NULL,
    "fetch" TEXT,
    PRIMARY KEY (record_id),
    UNIQUE (site, site_id), UNIQUE (title_id, record_id)
);
CREATE INDEX records_series_id
    ON records (series_id, site, season, episode) WHERE series_id IS NOT NULL;
CREATE INDEX records_newer_id
    ON records (newer_id) WHERE newer_id IS NOT NULL;
CREATE INDEX records_updated_at
    ON records (updated_at);
CREATE TABLE scores (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "kind" TEXT NOT NULL REFERENCES score_kinds,
    "value" NUMERIC NOT NULL CHECK (value BETWEEN 0 AND 100),
    "count" INTEGER CHECK (count > 0),
    "average" NUMERIC,
    "reviews" INTEGER,
    "liked" INTEGER,
    "neutral" INTEGER,
    "disliked" INTEGER,
    "certified" INTEGER,
    "sentiment" TEXT,
    "histogram" TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (record_id, kind)
) WITHOUT ROWID;
CREATE TABLE score_history (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "kind" TEXT NOT NULL REFERENCES score_kinds,
    "since" TEXT NOT NULL,
    "value" NUMERIC,
    "count" INTEGER,
    "average" NUMERIC,
    PRIMARY KEY (record_id, kind, since)
) WITHOUT ROWID;
CREATE TABLE people (
    "site" TEXT NOT NULL REFERENCES sites,
    "person_key" TEXT NOT NULL,
    "person_id" TEXT,
    "name" TEXT,
    "named_at" TEXT NOT NULL,
    PRIMARY KEY (site, person_key)
) WITHOUT ROWID;
CREATE TABLE credits (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "role" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "person_id" TEXT,
    "name" TEXT,
    "character" TEXT,
    PRIMARY KEY (record_id, role, position)
) WITHOUT ROWID;
CREATE INDEX credits_person_id
    ON credits (person_id) WHERE person_id IS NOT NULL;
CREATE TABLE offers (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "position" INTEGER NOT NULL,
    "provider" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "country" TEXT,
    "quality" TEXT,
    "price" NUMERIC,
    "currency" TEXT,
    "url" TEXT,
    "source" TEXT,
    "since" TEXT NOT NULL,
    "seen_at" TEXT,
    PRIMARY KEY (record_id, position)
) WITHOUT ROWID;
CREATE INDEX offers_provider
    ON offers (provider, record_id);
CREATE TABLE related (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "position" INTEGER NOT NULL,
    "relation" TEXT NOT NULL,
    "related_id" TEXT NOT NULL,
    "title" TEXT NOT NULL,
    "connection" TEXT,
    PRIMARY KEY (record_id, position)
) WITHOUT ROWID;
CREATE INDEX related_related_id
    ON related (related_id);
CREATE TABLE awards (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "position" INTEGER NOT NULL,
    "event" TEXT,
    "wins" INTEGER NOT NULL,
    "nominations" INTEGER NOT NULL,
    PRIMARY KEY (record_id, position)
) WITHOUT ROWID;
CREATE TABLE amounts (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "kind" TEXT NOT NULL,
    "value" INTEGER NOT NULL,
    "currency" TEXT NOT NULL,
    PRIMARY KEY (record_id, kind)
) WITHOUT ROWID;
CREATE TABLE other_titles (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "position" INTEGER NOT NULL,
    "title" TEXT NOT NULL,
    "country" TEXT,
    "language" TEXT,
    "kind" TEXT,
    PRIMARY KEY (record_id, position)
) WITHOUT ROWID;
CREATE TABLE misses (
    "site" TEXT NOT NULL REFERENCES sites,
    "site_id" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "checked_at" TEXT NOT NULL,
    PRIMARY KEY (site, site_id)
) WITHOUT ROWID;
CREATE INDEX misses_checked_at
    ON misses (checked_at);
CREATE TABLE aliases (
    "site" TEXT NOT NULL REFERENCES sites,
    "old_id" TEXT NOT NULL,
    "new_id" TEXT NOT NULL,
    "since" TEXT NOT NULL,
    PRIMARY KEY (site, old_id)
) WITHOUT ROWID;
CREATE INDEX aliases_new_id
    ON aliases (new_id, site);
CREATE TABLE lists (
    "site" TEXT NOT NULL REFERENCES sites,
    "list_name" TEXT NOT NULL,
    "pass_at" TEXT NOT NULL,
    "covers" INTEGER,
    "total" INTEGER,
    "computed" INTEGER NOT NULL,
    "read_at" TEXT NOT NULL,
    PRIMARY KEY (site, list_name)
) WITHOUT ROWID;
CREATE TABLE list_pages (
    "site" TEXT NOT NULL REFERENCES sites,
    "list_name" TEXT NOT NULL,
    "pass_at" TEXT NOT NULL,
    "page_offset" INTEGER NOT NULL,
    "next_offset" INTEGER NOT NULL,
    "ends" TEXT,
    PRIMARY KEY (site, list_name, pass_at, page_offset)
) WITHOUT ROWID;
CREATE TABLE list_entries (
    "site" TEXT NOT NULL REFERENCES sites,
    "list_name" TEXT NOT NULL,
    "pass_at" TEXT NOT NULL,
    "rank" INTEGER NOT NULL,
    "site_id" TEXT NOT NULL,
    PRIMARY KEY (site, list_name, pass_at, rank)
) WITHOUT ROWID;
CREATE INDEX list_entries_site_id
    ON list_entries (site_id, site);
CREATE TABLE imdb_episodes (
    "imdb_id" TEXT NOT NULL,
    "series_imdb_id" TEXT NOT NULL,
    "season" INTEGER CHECK (season >= 0),
    "episode" INTEGER CHECK (episode >= 0),
    "title" TEXT,
    "year" INTEGER,
    "rating" NUMERIC,
    "votes" INTEGER,
    PRIMARY KEY (imdb_id)
) WITHOUT ROWID;
CREATE INDEX imdb_episodes_series_imdb_id
    ON imdb_episodes (series_imdb_id, season, episode);
CREATE TABLE state (
    "state_id" INTEGER NOT NULL,
    "written" INTEGER NOT NULL DEFAULT 0,
    "exported" INTEGER NOT NULL DEFAULT 0,
    "matched" INTEGER NOT NULL DEFAULT 0,
    "views" TEXT,
    PRIMARY KEY (state_id)
);

INSERT INTO titles (
    title_id, title, original_title, kind, year, runtime_minutes, season, episode)
SELECT id, title, original_title, kind, year, runtime_minutes,
    CASE WHEN kind IN ('season', 'episode') THEN season END,
    CASE WHEN kind IN ('season', 'episode') THEN episode END
FROM movies;
INSERT INTO records (
    record_id, title_id, updated_at, site, site_id, url, title, kind, imdb_id, original_title,
    title_type, year, end_year, release_date, runtime_minutes, genres, countries, languages,
    certificate, plot, poster_url, poster_width, poster_height, keywords, interests, taglines,
    consensus, external_ids, imdb_top250_rank, imdb_top250_tv_rank, critic_review_count,
    popularity_rank, series_id, series_title, season, episode, season_count, episode_count,
    source, unknown_fields, scraped_at, "fetch")
SELECT id, id, updated_at, site, site_id, url, title, kind, imdb_id, original_title,
    title_type, year, end_year, release_date, runtime_minutes, genres, countries, languages,
    certificate, plot, poster_url, poster_width, poster_height, keywords, interests, taglines,
    consensus, external_ids, imdb_top250_rank, imdb_top250_tv_rank, critic_review_count,
    popularity_rank, series_id, series_title, season, episode, season_count, episode_count,
    source, unknown_fields, scraped_at, "fetch"
FROM movies;
INSERT INTO lists
SELECT site, list_name, max(scraped_at), NULL, NULL, max(list_computed), max(scraped_at)
FROM movies WHERE list_name IS NOT NULL AND list_rank IS NOT NULL
GROUP BY site, list_name;
-- Of several titles with one rank, the one that was read last has it.
INSERT INTO list_entries
SELECT site, list_name, pass_at, list_rank, site_id
FROM (
    SELECT m.site, m.list_name, l.pass_at, m.list_rank, m.site_id, row_number() OVER (
        PARTITION BY m.site, m.list_name, m.list_rank ORDER BY m.scraped_at DESC, m.id DESC
    ) AS nth
    FROM movies m JOIN lists l USING (site, list_name)
    WHERE m.list_rank IS NOT NULL
)
WHERE nth = 1;
INSERT INTO scores
SELECT m.id, s.kind, s.value, s.count, s.average, s.reviews, s.liked, s.neutral, s.disliked,
    s.certified, s.sentiment, s.histogram
FROM old_scores s JOIN movies m USING (site, site_id);
INSERT INTO score_history
SELECT m.id, h.kind, h.since, h.value, h.count, NULL
FROM old_score_history h JOIN movies m USING (site, site_id);
INSERT INTO people
SELECT site, coalesce(person_id, name), person_id, name, named_at FROM old_people;
INSERT INTO credits
SELECT m.id, c.role, c.position, c.person_id, c.name, c.character
FROM old_credits c JOIN movies m USING (site, site_id);
INSERT INTO offers
SELECT m.id, row_number() OVER (PARTITION BY m.id ORDER BY o.rowid), o.provider, o.kind, o.country,
    o.quality, o.price, o.currency, o.url, o.source, coalesce(o.seen_at, m.scraped_at), o.seen_at
FROM old_offers o JOIN movies m USING (site, site_id);
INSERT INTO related
SELECT m.id, r.position, r.relation, r.related_id, r.title, r.connection
FROM old_related r JOIN movies m USING (site, site_id);
INSERT INTO awards
SELECT m.id, row_number() OVER (PARTITION BY m.id ORDER BY a.rowid), a.event, a.wins, a.nominations
FROM old_awards a JOIN movies m USING (site, site_id);
INSERT INTO amounts
SELECT id, 'budget', budget, budget_currency FROM movies WHERE budget IS NOT NULL
UNION ALL
SELECT id, 'opening_weekend', opening_weekend, opening_weekend_currency
FROM movies WHERE opening_weekend IS NOT NULL
UNION ALL
SELECT id, 'domestic', domestic_gross, domestic_gross_currency
FROM movies WHERE domestic_gross IS NOT NULL
UNION ALL
SELECT id, 'worldwide', worldwide_gross, worldwide_gross_currency
FROM movies WHERE worldwide_gross IS NOT NULL;
INSERT INTO other_titles
SELECT m.id, o.position, o.title, o.country, o.language, o.kind
FROM old_other_titles o JOIN movies m USING (site, site_id);
INSERT INTO misses
SELECT site, site_id, url, outcome, reason, checked_at FROM old_misses;
INSERT INTO aliases
SELECT site, old_id, new_id, since FROM old_aliases;
INSERT INTO state (state_id, written) SELECT 1, written FROM old_state;

DROP TABLE movies;
DROP TABLE old_scores;
DROP TABLE old_score_history;
DROP TABLE old_credits;
DROP TABLE old_people;
DROP TABLE old_offers;
DROP TABLE old_related;
DROP TABLE old_awards;
DROP TABLE old_other_titles;
DROP TABLE old_misses;
DROP TABLE old_aliases;
DROP TABLE old_state;
