-- The types of the catalogue's own tables, in Postgres alone. For PostgreSQL 14 and later, in a
-- database whose encoding is UTF8.

CREATE TYPE site_state AS ENUM ('never', 'ok', 'absent', 'error', 'blocked');
-- A later value replaces an earlier one; see moviecrawler.catalogue.rows.
CREATE TYPE popularity_source AS ENUM ('votes', 'tmdb', 'given');
CREATE TYPE id_source AS ENUM ('list', 'sitemap', 'joined', 'wikidata', 'page', 'given');
CREATE TYPE match_decision AS ENUM ('accepted', 'review', 'refused');
