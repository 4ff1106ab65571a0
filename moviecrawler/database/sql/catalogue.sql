-- The catalogue's own tables, in Postgres alone: where each title is on each site, and when it is
-- due there. For PostgreSQL 14 and later, in a database whose encoding is UTF8.
--
--     titles ─< title_sites (one per site), title_matches
--
-- A title may have no records yet. `records.title_id` decides which record is of which title;
-- `sync_catalogue` updates title_sites accordingly.

CREATE TABLE schema_version AS SELECT 0 AS version;

CREATE TYPE site_state AS ENUM ('never', 'ok', 'absent', 'error', 'blocked');
-- A later value replaces an earlier one; see moviecrawler.catalogue.rows.
CREATE TYPE popularity_source AS ENUM ('votes', 'tmdb', 'given');
CREATE TYPE id_source AS ENUM ('list', 'sitemap', 'joined', 'wikidata', 'page', 'given');
CREATE TYPE match_decision AS ENUM ('accepted', 'review', 'refused');

CREATE TABLE title_sites (
    title_id      bigint NOT NULL,  -- of titles; a foreign key would double the time of an import
    -- Of sites, from which all statements take it; a foreign key would add a sixth to an import.
    site          text NOT NULL,
    state         site_state NOT NULL DEFAULT 'never',  -- the last outcome
    site_id       text CHECK (site_id <> ''),  -- null: not known there
    id_source     id_source,
    id_confidence real,  -- the points of catalogue.comparing for it
    id_verified   boolean NOT NULL DEFAULT false,  -- its page was compared, and is this title's
    popularity    real NOT NULL DEFAULT 0,  -- a copy of the title's, for the index
    last_success  timestamptz,
    next_due      timestamptz NOT NULL DEFAULT 'epoch',  -- epoch: it was never tried
    failures      integer NOT NULL DEFAULT 0,  -- in a row
    boost         real NOT NULL DEFAULT 0,
    boost_due     timestamptz,  -- from then on it is fetched before others; null: not boosted
    PRIMARY KEY (title_id, site)
);
CREATE UNIQUE INDEX title_sites_site_id ON title_sites (site, site_id) WHERE site_id IS NOT NULL;
-- The queues of catalogue/sql/due.sql: titles that were never read, stale titles, and below
-- boosted ones.
CREATE INDEX title_sites_unread ON title_sites (site, popularity DESC, title_id)
    WHERE last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL;
CREATE INDEX title_sites_stale ON title_sites (site, next_due, title_id)
    WHERE (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL;
-- Titles whose id on the site is unknown; those that were never searched are due since the epoch.
CREATE INDEX title_sites_unfound ON title_sites (site, next_due, popularity DESC, title_id)
    WHERE site_id IS NULL;
CREATE INDEX title_sites_boosted ON title_sites (site, boost DESC, boost_due, title_id)
    WHERE boost_due IS NOT NULL AND site_id IS NOT NULL;

CREATE TABLE title_matches (  -- the decisions on pages: whether they are a title's, and why
    title_id   bigint NOT NULL REFERENCES titles ON DELETE CASCADE,
    site       text NOT NULL REFERENCES sites,
    site_id    text NOT NULL,
    decision   match_decision NOT NULL,
    score      real NOT NULL,
    reasons    text[] NOT NULL,
    by_hand    boolean NOT NULL DEFAULT false,  -- by `scrapy catalogue review`
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (title_id, site, site_id)
);
CREATE INDEX title_matches_review ON title_matches (score DESC, title_id, site, site_id)
    WHERE decision = 'review';

CREATE TABLE listed_ids (  -- ids that a list or sitemap of the site names
    site     text NOT NULL REFERENCES sites,
    site_id  text NOT NULL,
    key      text NOT NULL,  -- a title's own keys find it by this; see catalogue.slugs
    year     integer,
    source   id_source NOT NULL,
    PRIMARY KEY (site, site_id)
);
CREATE INDEX listed_ids_key ON listed_ids (site, key);

CREATE TABLE imports (  -- which version of which source is in the catalogue
    source      text PRIMARY KEY,
    version     text NOT NULL,
    rows_done   bigint NOT NULL,  -- the rows that are loaded, from the beginning of the source
    finished_at timestamptz,  -- null: not all rows are loaded
    finished_rows bigint  -- the rows at the last complete import
);

-- The queue that is fed with what is due on a site, so that no two fetch the same titles.
CREATE TABLE feeds (
    site    text PRIMARY KEY REFERENCES sites,
    queue   text NOT NULL,
    seen_at timestamptz NOT NULL
);
