-- The embedded database, `DATA_DIR/movies.sqlite3`: what each site says of each title. For SQLite
-- 3.38 and later.
--
--     movies ─< scores, score_history, credits ─ people, offers, related, awards, other_titles
--     scoreboard: a row a title, of all sites
--
-- A row of `movies` is one title on one site; the other tables name it by (site, site_id). Lists
-- are JSON arrays. Times are UTC, such as 2026-03-01T12:00:00+00:00. Null and an empty list mean
-- that the site has no such value, unless `unknown_fields` names the column: then nothing is known.

CREATE TABLE movies (
    id                      INTEGER PRIMARY KEY,  -- rises in the order of first storing
    site                    TEXT NOT NULL,
    site_id                 TEXT NOT NULL,
    imdb_id                 TEXT,
    url                     TEXT NOT NULL,
    title                   TEXT NOT NULL,
    original_title          TEXT,
    -- One of movie, series, season, episode, game, short, video, music and other.
    kind                    TEXT NOT NULL,
    title_type              TEXT,
    year                    INTEGER,
    end_year                INTEGER,
    release_date            TEXT,
    runtime_minutes         INTEGER,
    genres                  TEXT NOT NULL,
    countries               TEXT NOT NULL,
    languages               TEXT NOT NULL,
    certificate             TEXT,
    directors               TEXT NOT NULL,  -- names; `credits` has their ids
    writers                 TEXT NOT NULL,
    creators                TEXT NOT NULL,
    plot                    TEXT,
    poster_url              TEXT,
    poster_width            INTEGER,
    poster_height           INTEGER,
    imdb_rating             NUMERIC,
    imdb_votes              INTEGER,
    metascore               NUMERIC,  -- on IMDb's pages it may be outdated
    metascore_reviews       INTEGER,
    metacritic_user_score   NUMERIC,
    metacritic_user_ratings INTEGER,
    tomatometer             NUMERIC,
    tomatometer_reviews     INTEGER,
    popcornmeter            NUMERIC,
    popcornmeter_ratings    INTEGER,
    imdb_top250_rank        INTEGER,
    imdb_top250_tv_rank     INTEGER,
    popularity_rank         INTEGER,
    critic_review_count     INTEGER,
    budget                  INTEGER,
    budget_currency         TEXT,
    opening_weekend         INTEGER,
    opening_weekend_currency TEXT,
    domestic_gross          INTEGER,
    domestic_gross_currency TEXT,
    worldwide_gross         INTEGER,
    worldwide_gross_currency TEXT,
    keywords                TEXT NOT NULL,
    interests               TEXT NOT NULL,
    taglines                TEXT NOT NULL,
    consensus               TEXT,
    external_ids            TEXT NOT NULL,  -- a JSON object
    series_id               TEXT,  -- of a season or an episode: the site_id of its series
    series_title            TEXT,
    season                  INTEGER,
    episode                 INTEGER,
    season_count            INTEGER,
    episode_count           INTEGER,
    list_name               TEXT,  -- the list that led to the title
    list_rank               INTEGER,
    list_computed           INTEGER NOT NULL,
    source                  TEXT NOT NULL,  -- page, list or dataset
    unknown_fields          TEXT NOT NULL,
    scraped_at              TEXT NOT NULL,
    "fetch"                 TEXT,  -- a JSON object: how the page was fetched
    updated_at              TEXT NOT NULL,  -- when anything but scraped_at and fetch last changed
    UNIQUE (site, site_id)
);
CREATE INDEX movies_in_order
    ON movies (site, list_name IS NULL, list_name, list_rank IS NULL, list_rank, id);
CREATE INDEX movies_updated_at ON movies (updated_at);
CREATE INDEX movies_title ON movies (title COLLATE NOCASE);
CREATE INDEX movies_series ON movies (site, series_id, season, episode) WHERE series_id IS NOT NULL;

CREATE TABLE scores (
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    kind          TEXT NOT NULL,
    value         NUMERIC NOT NULL,  -- from 0 (IMDb's from 1) to `scale`
    scale         INTEGER NOT NULL,
    count         INTEGER,  -- votes, ratings or reviews
    average       NUMERIC,  -- the mean rating behind a share of likes, up to `average_scale`
    average_scale INTEGER,
    reviews       INTEGER,
    liked         INTEGER,
    neutral       INTEGER,
    disliked      INTEGER,
    certified     INTEGER,
    sentiment     TEXT,
    histogram     TEXT NOT NULL,  -- votes for 1 to 10
    PRIMARY KEY (site, site_id, kind)
) WITHOUT ROWID;

CREATE TABLE score_history (
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    kind  TEXT NOT NULL,
    since TEXT NOT NULL,  -- the first page that showed it
    value NUMERIC,  -- null: from then on the site showed none
    count INTEGER,
    PRIMARY KEY (site, site_id, kind, since)
) WITHOUT ROWID;

CREATE TABLE credits (
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    role      TEXT NOT NULL,  -- director, writer, creator or cast
    position  INTEGER NOT NULL,  -- 1 is the first of its role
    person_id TEXT,
    name      TEXT,
    character TEXT,
    PRIMARY KEY (site, site_id, role, position)
) WITHOUT ROWID;
CREATE INDEX credits_person ON credits (person_id) WHERE person_id IS NOT NULL;

CREATE TABLE people (
    site TEXT NOT NULL,
    person_id TEXT,  -- null where the site gives none; then the name identifies the person
    name      TEXT,  -- the newest
    named_at  TEXT NOT NULL
);
CREATE UNIQUE INDEX people_by_id ON people (site, person_id) WHERE person_id IS NOT NULL;
CREATE UNIQUE INDEX people_by_name ON people (site, name) WHERE person_id IS NULL;

CREATE TABLE offers (  -- where to watch it
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    kind     TEXT NOT NULL,  -- free, ads, subscription, rent, buy or cinema
    country  TEXT,
    quality  TEXT,
    price    NUMERIC,
    currency TEXT,
    url      TEXT,
    source   TEXT,  -- who the data is from and must be credited
    seen_at  TEXT  -- null: the movie's scraped_at
);
CREATE INDEX offers_of_title ON offers (site, site_id);
CREATE INDEX offers_provider ON offers (provider);

CREATE TABLE related (
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    relation   TEXT NOT NULL,  -- similar or connection
    position   INTEGER NOT NULL,
    related_id TEXT NOT NULL,
    title      TEXT NOT NULL,
    connection TEXT,
    PRIMARY KEY (site, site_id, position)
) WITHOUT ROWID;

CREATE TABLE awards (
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    event       TEXT,  -- null: all together
    wins        INTEGER NOT NULL,
    nominations INTEGER NOT NULL
);
CREATE INDEX awards_of_title ON awards (site, site_id);

CREATE TABLE other_titles (
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    title    TEXT NOT NULL,
    country  TEXT,
    language TEXT,
    kind     TEXT,
    PRIMARY KEY (site, site_id, position)
) WITHOUT ROWID;

CREATE TABLE misses (  -- titles that were requested and could not be read since
    site TEXT NOT NULL, site_id TEXT NOT NULL,
    url        TEXT NOT NULL,
    outcome    TEXT NOT NULL,  -- absent, failed, blocked or disallowed
    reason     TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    PRIMARY KEY (site, site_id)
) WITHOUT ROWID;

-- One row a title, replaced at the end of a crawl. The columns are those of the view of the same
-- name in Postgres.
CREATE TABLE scoreboard (
    title_id                  INTEGER PRIMARY KEY,  -- movies.id of its first record
    title                     TEXT NOT NULL,
    year                      INTEGER,
    kind                      TEXT NOT NULL,
    runtime_minutes           INTEGER,
    imdb_id                   TEXT,
    imdb_url                  TEXT,
    metacritic_id             TEXT,
    metacritic_url            TEXT,
    rottentomatoes_id         TEXT,
    rottentomatoes_url        TEXT,
    imdb_rating               REAL,
    imdb_votes                INTEGER,
    imdb_rating_100           NUMERIC,  -- on a scale of 0 to 100, as the others of this kind
    metascore                 NUMERIC,
    metascore_reviews         INTEGER,
    metascore_100             NUMERIC,
    metacritic_user_score     REAL,
    metacritic_user_ratings   INTEGER,
    metacritic_user_score_100 NUMERIC,
    tomatometer               NUMERIC,
    tomatometer_reviews       INTEGER,
    tomatometer_100           NUMERIC,
    popcornmeter              NUMERIC,
    popcornmeter_ratings      INTEGER,
    popcornmeter_100          NUMERIC,
    critics_mean              NUMERIC,  -- of Metascore and Tomatometer
    users_mean                NUMERIC,  -- of IMDb, Metacritic's users and Popcornmeter
    overall                   NUMERIC,  -- critics and users count the same
    imdb_fetched_at           TEXT,
    metacritic_fetched_at     TEXT,
    rottentomatoes_fetched_at TEXT,
    imdb_list_name            TEXT,
    imdb_list_rank            INTEGER,
    best_list_rank            INTEGER,
    matched_by                TEXT NOT NULL,  -- why the sites' records are taken for one title
    tmdb_id                   INTEGER  -- always null: only the catalogue in Postgres has it
);
CREATE INDEX scoreboard_imdb_id ON scoreboard (imdb_id);
CREATE INDEX scoreboard_title ON scoreboard (title COLLATE NOCASE);

-- One row: how many batches were written, and how many of them the CSV files and the scoreboard
-- have.
CREATE TABLE state (
    written INTEGER NOT NULL DEFAULT 0,
    exported INTEGER NOT NULL DEFAULT 0,
    matched INTEGER NOT NULL DEFAULT 0
);
INSERT INTO state DEFAULT VALUES;

-- The seasons and episodes of all sites: one row for those of a series with the same numbers.
-- `series` identifies the series; `nth` numbers those of one site with the same season and episode
-- number.
CREATE VIEW parts AS
SELECT p.series_title_id,
    p.of_series AS series_title,
    p.series_imdb_id,
    p.series,
    p.kind,
    p.season,
    p.episode,
    p.nth,
    min(p.id) AS title_id,
    coalesce(
        max(p.episode_count) FILTER (WHERE p.site = 'rottentomatoes'), max(p.episode_count)
    ) AS episode_count,
    coalesce(
        max(p.title) FILTER (WHERE p.site = 'imdb'),
        max(p.title) FILTER (WHERE p.site = 'rottentomatoes'),
        max(p.title)
    ) AS title,
    coalesce(
        max(p.year) FILTER (WHERE p.site = 'imdb'),
        max(p.year) FILTER (WHERE p.site = 'rottentomatoes'),
        max(p.year)
    ) AS year,
    max(p.site_id) FILTER (WHERE p.site = 'imdb') AS imdb_id,
    max(p.site_id) FILTER (WHERE p.site = 'metacritic') AS metacritic_id,
    max(p.site_id) FILTER (WHERE p.site = 'rottentomatoes') AS rottentomatoes_id,
    max(p.imdb_rating) AS imdb_rating,
    max(p.imdb_votes) AS imdb_votes,
    max(p.metascore) AS metascore,
    max(p.metascore_reviews) AS metascore_reviews,
    max(p.metacritic_user_score) AS metacritic_user_score,
    max(p.metacritic_user_ratings) AS metacritic_user_ratings,
    max(p.tomatometer) AS tomatometer,
    max(p.tomatometer_reviews) AS tomatometer_reviews,
    max(p.popcornmeter) AS popcornmeter,
    max(p.popcornmeter_ratings) AS popcornmeter_ratings
FROM (
    SELECT x.*,
        dense_rank() OVER (
            PARTITION BY x.series, x.kind, x.site, x.season, x.episode ORDER BY x.site_id
        ) AS nth
    FROM (
        SELECT b.title_id AS series_title_id,
            coalesce(b.title, m.series_title) AS of_series,
            iif(b.imdb_url IS NULL, NULL, b.imdb_id) AS series_imdb_id,
            coalesce(b.title_id, m.series_title, m.series_id) AS series,
            m.*
        FROM movies m LEFT JOIN scoreboard b ON m.series_id = CASE m.site
            WHEN 'imdb' THEN b.imdb_id
            WHEN 'metacritic' THEN b.metacritic_id
            WHEN 'rottentomatoes' THEN b.rottentomatoes_id
        END
        WHERE m.kind IN ('season', 'episode')
    ) x
) p
GROUP BY p.series, p.kind, p.season, p.episode, p.nth;
