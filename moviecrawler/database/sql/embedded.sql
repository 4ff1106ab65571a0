-- The embedded database, `DATA_DIR/movies.sqlite3`: what each site says of each title. For SQLite 3.38 and later.
--
--     movies ─< scores, score_history, credits ─ people, offers, related, awards, other_titles      scoreboard: a row a title, of all sites
--
-- A row of `movies` is one title on one site; the other tables name it by (site, site_id). Lists are JSON arrays. Times are UTC, such as
-- 2026-03-01T12:00:00+00:00. Null and an empty list mean that the site has no such value, unless `unknown_fields` names the column: then nothing is known.

CREATE TABLE movies (
    id                      INTEGER PRIMARY KEY,  -- rises in the order of first storing
    site                    TEXT NOT NULL,
    site_id                 TEXT NOT NULL,
    imdb_id                 TEXT,
    url                     TEXT NOT NULL,
    title                   TEXT NOT NULL,
    original_title          TEXT,
    kind                    TEXT NOT NULL,  -- movie, series, season, episode, game, short, video, music or other
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
CREATE INDEX movies_in_order ON movies (site, list_name IS NULL, list_name, list_rank IS NULL, list_rank, id);
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

-- One row a title, replaced at the end of a crawl. The columns are those of the view of the same name in Postgres.
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

CREATE TABLE state (  -- one row: how many batches were written, and how many of them the CSV files and the scoreboard have
    written INTEGER NOT NULL DEFAULT 0,
    exported INTEGER NOT NULL DEFAULT 0,
    matched INTEGER NOT NULL DEFAULT 0
);
INSERT INTO state DEFAULT VALUES;

-- Each row of `movies` with all that belongs to it, as JSON of moviecrawler.items.Movie.
CREATE VIEW items AS
SELECT m.id, m.site, m.site_id, json_object(
    'site', m.site, 'site_id', m.site_id, 'url', m.url, 'title', m.title, 'kind', m.kind, 'imdb_id', m.imdb_id,
    'original_title', m.original_title, 'title_type', m.title_type, 'year', m.year, 'end_year', m.end_year,
    'release_date', m.release_date, 'runtime_minutes', m.runtime_minutes, 'genres', json(m.genres), 'countries', json(m.countries),
    'languages', json(m.languages), 'certificate', m.certificate, 'plot', m.plot, 'poster_url', m.poster_url,
    'poster_width', m.poster_width, 'poster_height', m.poster_height, 'keywords', json(m.keywords), 'interests', json(m.interests),
    'taglines', json(m.taglines), 'consensus', m.consensus, 'external_ids', json(m.external_ids),
    'imdb_top250_rank', m.imdb_top250_rank, 'imdb_top250_tv_rank', m.imdb_top250_tv_rank, 'critic_review_count', m.critic_review_count,
    'popularity_rank', m.popularity_rank, 'series_id', m.series_id, 'series_title', m.series_title, 'season', m.season,
    'episode', m.episode, 'season_count', m.season_count, 'episode_count', m.episode_count, 'list_name', m.list_name,
    'list_rank', m.list_rank, 'list_computed', json(iif(m.list_computed, 'true', 'false')), 'source', m.source, 'unknown_fields', json(m.unknown_fields),
    'scraped_at', m.scraped_at, 'fetch', json(m."fetch"),
    'credits', (SELECT json_group_array(json_object('name', c.name, 'role', c.role, 'position', c.position, 'person_id', c.person_id,
            'character', c.character)) FROM (
        SELECT * FROM credits x WHERE x.site = m.site AND x.site_id = m.site_id
        ORDER BY instr('director writer creator cast', x.role), x.position) c),
    'scores', (SELECT json_group_array(json_object('kind', s.kind, 'value', s.value, 'count', s.count, 'average', s.average,
            'reviews', s.reviews, 'liked', s.liked, 'neutral', s.neutral, 'disliked', s.disliked, 'certified', json(CASE s.certified WHEN 1 THEN 'true' WHEN 0 THEN 'false' END),
            'sentiment', s.sentiment, 'histogram', json(s.histogram))) FROM (
        SELECT * FROM scores x WHERE x.site = m.site AND x.site_id = m.site_id
        ORDER BY instr('imdb metascore metacritic_user tomatometer, popcornmeter, tomatometer_top popcornmeter_all popcornmeter_verified',
            x.kind)) s),
    'offers', (SELECT json_group_array(json_object('provider', o.provider, 'kind', o.kind, 'country', o.country, 'quality', o.quality,
            'price', o.price, 'currency', o.currency, 'url', o.url, 'source', o.source, 'seen_at', o.seen_at)) FROM (
        SELECT * FROM offers x WHERE x.site = m.site AND x.site_id = m.site_id ORDER BY x.rowid) o),
    'related', (SELECT json_group_array(json_object('relation', r.relation, 'site_id', r.related_id, 'title', r.title,
            'connection', r.connection)) FROM (
        SELECT * FROM related x WHERE x.site = m.site AND x.site_id = m.site_id ORDER BY x.position) r),
    'awards', (SELECT json_group_array(json_object('event', a.event, 'wins', a.wins, 'nominations', a.nominations)) FROM (
        SELECT * FROM awards x WHERE x.site = m.site AND x.site_id = m.site_id ORDER BY x.rowid) a),
    'other_titles', (SELECT json_group_array(json_object('title', t.title, 'country', t.country, 'language', t.language, 'kind', t.kind))
        FROM (SELECT * FROM other_titles x WHERE x.site = m.site AND x.site_id = m.site_id ORDER BY x.position) t),
    'amounts', (SELECT json_group_array(json_object('kind', a.kind, 'value', a.value, 'currency', a.currency)) FROM (
        SELECT 'budget' AS kind, m.budget AS value, m.budget_currency AS currency
        UNION ALL SELECT 'opening_weekend', m.opening_weekend, m.opening_weekend_currency
        UNION ALL SELECT 'domestic', m.domestic_gross, m.domestic_gross_currency
        UNION ALL SELECT 'worldwide', m.worldwide_gross, m.worldwide_gross_currency) a WHERE a.value IS NOT NULL)
    ) AS item
FROM movies m;

-- The seasons and episodes of all sites: one row for those of a series with the same numbers. `series` identifies the series; `nth` numbers
-- those of one site with the same season and episode number.
CREATE VIEW parts AS
SELECT p.series_title_id, p.of_series AS series_title, p.series_imdb_id, p.series, p.kind, p.season, p.episode, p.nth,
    coalesce(max(p.episode_count) FILTER (WHERE p.site = 'rottentomatoes'), max(p.episode_count)) AS episode_count,
    coalesce(max(p.title) FILTER (WHERE p.site = 'imdb'), max(p.title) FILTER (WHERE p.site = 'rottentomatoes'), max(p.title)) AS title,
    coalesce(max(p.year) FILTER (WHERE p.site = 'imdb'), max(p.year) FILTER (WHERE p.site = 'rottentomatoes'), max(p.year)) AS year,
    max(p.site_id) FILTER (WHERE p.site = 'imdb') AS imdb_id,
    max(p.site_id) FILTER (WHERE p.site = 'metacritic') AS metacritic_id,
    max(p.site_id) FILTER (WHERE p.site = 'rottentomatoes') AS rottentomatoes_id,
    max(p.imdb_rating) AS imdb_rating, max(p.imdb_votes) AS imdb_votes,
    max(p.metascore) AS metascore, max(p.metascore_reviews) AS metascore_reviews,
    max(p.metacritic_user_score) AS metacritic_user_score, max(p.metacritic_user_ratings) AS metacritic_user_ratings,
    max(p.tomatometer) AS tomatometer, max(p.tomatometer_reviews) AS tomatometer_reviews,
    max(p.popcornmeter) AS popcornmeter, max(p.popcornmeter_ratings) AS popcornmeter_ratings
FROM (
    SELECT x.*, dense_rank() OVER (PARTITION BY x.series, x.kind, x.site, x.season, x.episode ORDER BY x.site_id) AS nth
    FROM (
        SELECT b.title_id AS series_title_id, coalesce(b.title, m.series_title) AS of_series,
            iif(b.imdb_url IS NULL, NULL, b.imdb_id) AS series_imdb_id, coalesce(b.title_id, m.series_title, m.series_id) AS series, m.*
        FROM movies m LEFT JOIN scoreboard b ON m.series_id = CASE m.site
            WHEN 'imdb' THEN b.imdb_id WHEN 'metacritic' THEN b.metacritic_id WHEN 'rottentomatoes' THEN b.rottentomatoes_id END
        WHERE m.kind IN ('season', 'episode')
    ) x
) p
GROUP BY p.series, p.kind, p.season, p.episode, p.nth;

CREATE VIEW episode_scores AS
SELECT series_title_id, series_title, series_imdb_id, season, episode, title, year, imdb_id, metacritic_id, rottentomatoes_id, imdb_rating, imdb_votes,
    metascore, metascore_reviews, metacritic_user_score, metacritic_user_ratings, tomatometer, tomatometer_reviews, popcornmeter, popcornmeter_ratings
FROM parts WHERE kind = 'episode';

-- IMDb rates no seasons: `imdb_rating` is derived, the mean of its episodes weighted by votes.
CREATE VIEW season_scores AS
SELECT p.series_title_id, p.series_title, p.series_imdb_id, p.season,
    min(p.title) FILTER (WHERE p.kind = 'season') AS title, min(p.year) FILTER (WHERE p.kind = 'season') AS year,
    min(p.metacritic_id) FILTER (WHERE p.kind = 'season') AS metacritic_id, min(p.rottentomatoes_id) FILTER (WHERE p.kind = 'season') AS rottentomatoes_id,
    round(sum(p.imdb_rating * p.imdb_votes) * 1.0 / sum(p.imdb_votes), 2) AS imdb_rating, sum(p.imdb_votes) IS NOT NULL AS imdb_rating_derived,
    sum(p.imdb_votes) AS imdb_votes, sum(p.kind = 'episode') AS episodes, count(p.imdb_votes) AS episodes_rated,
    max(p.episode_count) FILTER (WHERE p.kind = 'season') AS episode_count,
    max(p.metascore) FILTER (WHERE p.kind = 'season') AS metascore, max(p.metascore_reviews) FILTER (WHERE p.kind = 'season') AS metascore_reviews,
    max(p.metacritic_user_score) FILTER (WHERE p.kind = 'season') AS metacritic_user_score,
    max(p.metacritic_user_ratings) FILTER (WHERE p.kind = 'season') AS metacritic_user_ratings,
    max(p.tomatometer) FILTER (WHERE p.kind = 'season') AS tomatometer, max(p.tomatometer_reviews) FILTER (WHERE p.kind = 'season') AS tomatometer_reviews,
    max(p.popcornmeter) FILTER (WHERE p.kind = 'season') AS popcornmeter, max(p.popcornmeter_ratings) FILTER (WHERE p.kind = 'season') AS popcornmeter_ratings
FROM parts p
WHERE p.season IS NOT NULL
GROUP BY p.series, p.season;
