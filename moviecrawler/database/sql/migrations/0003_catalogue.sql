-- The catalogue: which titles exist, where each is on each site, and when each is due there.
--
--     titles ─< title_sites (one for each site)      sightings: what lists and sitemaps name, by site
--            ─< title_matches                         imports, list_readings, site_pauses: what was done, and must wait
--
-- A title has its records as before, and may have none yet. `records.title_id` stays the one truth about which record is
-- which title; `settle_titles` brings title_sites after it.

CREATE TYPE site_state AS ENUM ('never', 'ok', 'absent', 'error', 'blocked');
-- Later ones take the place of earlier ones; see moviecrawler.catalogue.rows.
CREATE TYPE popularity_source AS ENUM ('tmdb', 'votes', 'given');
CREATE TYPE id_source AS ENUM ('guess', 'list', 'sitemap', 'joined', 'wikidata', 'page', 'given');
CREATE TYPE match_decision AS ENUM ('accepted', 'review', 'refused');

ALTER TABLE titles
    ADD COLUMN imdb_id           text CHECK (imdb_id ~ '^tt[0-9]{7,}$'),
    ADD COLUMN tmdb_id           integer,
    ADD COLUMN title             text CHECK (title <> ''),
    ADD COLUMN original_title    text,
    ADD COLUMN kind              title_kind,
    ADD COLUMN year              integer CHECK (year BETWEEN 1870 AND 2100),
    ADD COLUMN runtime_minutes   integer CHECK (runtime_minutes > 0),
    ADD COLUMN popularity        real NOT NULL DEFAULT 0 CHECK (popularity BETWEEN 0 AND 100),
    ADD COLUMN popularity_source popularity_source,
    ADD COLUMN round_at          timestamptz;  -- when lane 2's last round of it began, or the next one begins

CREATE TABLE title_sites (
    title_id      bigint NOT NULL,  -- of titles; a foreign key would double the time of an import
    site          site NOT NULL,
    state         site_state NOT NULL DEFAULT 'never',  -- how the last try ended
    site_id       text CHECK (site_id <> ''),  -- null: not known there
    id_source     id_source,
    id_confidence real,  -- the points of catalogue.matching for it
    id_verified   boolean NOT NULL DEFAULT false,  -- a page was read under it, and was this title's
    popularity    real NOT NULL DEFAULT 0,  -- the title's, here for the sake of the index
    last_success  timestamptz,
    next_due      timestamptz NOT NULL DEFAULT 'epoch',  -- when lane 1 wants it; epoch: it was never tried
    failures      integer NOT NULL DEFAULT 0,  -- in a row
    boost         real NOT NULL DEFAULT 0,
    boost_due     timestamptz,  -- when lane 2 wants it; null: it doesn't
    claimed_by    text,
    claimed_until timestamptz,
    claims        integer NOT NULL DEFAULT 0,  -- since the last outcome
    guessed_at    timestamptz,  -- when an id was last guessed
    PRIMARY KEY (title_id, site)
);

-- Titles that came before the catalogue.
INSERT INTO title_sites (title_id, site) SELECT title_id, unnest(enum_range(NULL::site)) FROM titles;
UPDATE titles t SET imdb_id = r.site_id FROM records r WHERE r.title_id = t.title_id AND r.site = 'imdb';
UPDATE titles t
SET title = r.title, original_title = r.original_title, kind = r.kind, year = r.year, runtime_minutes = r.runtime_minutes
FROM (
    SELECT DISTINCT ON (title_id) * FROM records
    ORDER BY title_id, array_position('{imdb,rottentomatoes,metacritic}'::site[], site)
) r
WHERE r.title_id = t.title_id;
UPDATE title_sites s
SET site_id = r.site_id, id_source = 'joined',
    state = CASE WHEN r.source = 'list' THEN 'never' ELSE 'ok' END::site_state,
    last_success = CASE WHEN r.source <> 'list' THEN r.scraped_at END,
    next_due = r.scraped_at + interval '14 days'
FROM records r
WHERE r.title_id = s.title_id AND r.site = s.site;

CREATE UNIQUE INDEX titles_imdb_id ON titles (imdb_id) WHERE imdb_id IS NOT NULL;
CREATE INDEX titles_tmdb_id ON titles (tmdb_id) WHERE tmdb_id IS NOT NULL;
CREATE UNIQUE INDEX title_sites_site_id ON title_sites (site, site_id) WHERE site_id IS NOT NULL;
-- The queues of lane 1, as in catalogue.lanes: what was never read, and the rest by when it is due.
CREATE INDEX title_sites_unread ON title_sites (site, popularity DESC, title_id)
    WHERE last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL;
CREATE INDEX title_sites_stale ON title_sites (site, next_due, title_id)
    WHERE (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL;
-- Titles whose id on the site is still to be found; those that were never looked for are due since the epoch.
CREATE INDEX title_sites_unfound ON title_sites (site, next_due, popularity DESC, title_id) WHERE site_id IS NULL;
-- Lane 2.
CREATE INDEX title_sites_boosted ON title_sites (site, boost DESC, boost_due, title_id)
    WHERE boost_due IS NOT NULL AND site_id IS NOT NULL;
CREATE INDEX title_sites_claimed_by ON title_sites (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX title_sites_guessed_at ON title_sites (site, guessed_at) WHERE guessed_at IS NOT NULL;

CREATE TABLE title_matches (  -- pages that were taken for a title's, or not, and why
    title_id   bigint NOT NULL REFERENCES titles ON DELETE CASCADE,
    site       site NOT NULL,
    site_id    text NOT NULL,
    decision   match_decision NOT NULL,
    score      real NOT NULL,
    reasons    text[] NOT NULL,
    by_hand    boolean NOT NULL DEFAULT false,  -- by `scrapy catalogue review`
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (title_id, site, site_id)
);
CREATE INDEX title_matches_review ON title_matches (score DESC) WHERE decision = 'review';

CREATE TABLE sightings (  -- ids that a list or sitemap of the site names
    site     site NOT NULL,
    site_id  text NOT NULL,
    key      text NOT NULL,  -- by which a title's own keys find it; see catalogue.matching
    title    text,
    year     integer,
    source   id_source NOT NULL,
    seen_at  timestamptz NOT NULL,
    PRIMARY KEY (site, site_id)
);
CREATE INDEX sightings_key ON sightings (site, key);

CREATE TABLE imports (  -- which version of which source is in the catalogue
    source      text PRIMARY KEY,
    version     text NOT NULL,
    rows_done   bigint NOT NULL,  -- from its beginning
    finished_at timestamptz  -- null: it was broken off there
);

CREATE TABLE list_readings (  -- of the lists that `lane=due` reads by itself
    site       site NOT NULL,
    reading    text NOT NULL CHECK (reading IN ('lists', 'sitemap')),
    began_at   timestamptz NOT NULL,
    pages_open integer NOT NULL,  -- asked for and not read yet
    PRIMARY KEY (site, reading)
);

CREATE TABLE site_pauses (  -- sites that have refused us
    site   site PRIMARY KEY,
    until  timestamptz NOT NULL,
    reason text NOT NULL
);

-- Has lane 2 fetch titles on all sites: now, or a week after its last round of them. Returns how many of them are known.
CREATE FUNCTION boost_title_ids(ids bigint[], weight real, at timestamptz) RETURNS bigint LANGUAGE sql AS $$
    WITH known AS (
        SELECT title_id, round_at, CASE WHEN round_at > at - interval '7 days' THEN
            CASE WHEN round_at > at THEN round_at ELSE round_at + interval '7 days' END ELSE at END AS next_round
        FROM titles WHERE title_id = ANY (ids) ORDER BY title_id FOR UPDATE
    ), rounds AS (
        UPDATE titles t SET round_at = k.next_round FROM known k WHERE t.title_id = k.title_id
    ), sites AS (
        UPDATE title_sites s SET boost = s.boost + weight,
            -- A page that came late in one round doesn't come early in the next; nor does the answer that there is none.
            boost_due = coalesce(s.boost_due, CASE WHEN k.round_at IS NULL THEN k.next_round
                ELSE greatest(k.next_round, s.last_success + interval '7 days',
                    CASE WHEN s.state = 'absent' THEN s.next_due - interval '83 days' END) END),
            -- What is not known there is looked for at once.
            next_due = CASE WHEN s.site_id IS NULL AND s.state = 'never' THEN 'epoch' ELSE s.next_due END
        FROM known k WHERE s.title_id = k.title_id
    )
    SELECT count(*) FROM known
$$;

-- The same by IMDb ids, for people and other programs:
--
--     SELECT boost_titles('{tt0111161}');
CREATE FUNCTION boost_titles(imdb_ids text[], weight real DEFAULT 1, at timestamptz DEFAULT now()) RETURNS bigint
LANGUAGE sql AS $$
    SELECT boost_title_ids(ARRAY(SELECT title_id FROM titles WHERE imdb_id = ANY (imdb_ids)), weight, at)
$$;

-- Brings the catalogue after records that were written or moved: call it with the titles that have or had them.
CREATE FUNCTION settle_titles(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former record;
    moved title_sites[];
BEGIN
    -- Known by an IMDb id is the title that has its record.
    FOR former IN
        SELECT t.*, r.title_id AS target FROM records r JOIN titles t ON t.imdb_id = r.site_id
        WHERE r.title_id = ANY (ids) AND r.site = 'imdb' AND t.title_id <> r.title_id
    LOOP
        UPDATE titles SET imdb_id = NULL, tmdb_id = NULL WHERE title_id = former.title_id;
        UPDATE titles SET imdb_id = former.imdb_id, tmdb_id = former.tmdb_id, popularity = former.popularity,
            popularity_source = former.popularity_source, round_at = former.round_at
        WHERE title_id = former.target;
        UPDATE title_sites SET popularity = former.popularity WHERE title_id = former.target;
        ids := ids || former.title_id;
    END LOOP;
    UPDATE titles t SET imdb_id = r.site_id
    FROM records r
    WHERE r.title_id = ANY (ids) AND r.title_id = t.title_id AND r.site = 'imdb' AND t.imdb_id IS DISTINCT FROM r.site_id;

    UPDATE titles t
    SET title = r.title, original_title = r.original_title, kind = r.kind, year = r.year,
        runtime_minutes = r.runtime_minutes
    FROM (
        SELECT DISTINCT ON (title_id) * FROM records WHERE title_id = ANY (ids)
        ORDER BY title_id, array_position('{imdb,rottentomatoes,metacritic}'::site[], site)
    ) r
    WHERE r.title_id = t.title_id AND t.title IS NULL;

    INSERT INTO title_sites (title_id, site, popularity)
    SELECT t.title_id, unnest(enum_range(NULL::site)), t.popularity FROM titles t
    WHERE t.title_id = ANY (ids) AND (t.imdb_id IS NOT NULL OR EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id))
        AND (SELECT count(*) FROM title_sites s WHERE s.title_id = t.title_id) < 3
    ON CONFLICT DO NOTHING;

    -- An id goes with its record, and what is known of when it was fetched goes with the id.
    SELECT array_agg(s) INTO moved
    FROM records r JOIN title_sites s ON s.site = r.site AND s.site_id = r.site_id AND s.title_id <> r.title_id
    WHERE r.title_id = ANY (ids);
    IF moved IS NOT NULL THEN
        UPDATE title_sites s
        SET site_id = NULL, id_source = NULL, id_confidence = NULL, id_verified = false, state = 'never',
            last_success = NULL, failures = 0
        FROM unnest(moved) m WHERE s.title_id = m.title_id AND s.site = m.site;
        UPDATE title_sites s
        SET site_id = m.site_id, id_source = m.id_source, id_confidence = m.id_confidence, id_verified = m.id_verified,
            state = m.state, last_success = m.last_success, next_due = m.next_due, failures = m.failures,
            claimed_by = m.claimed_by, claimed_until = m.claimed_until
        FROM unnest(moved) m JOIN records r ON r.site = m.site AND r.site_id = m.site_id
        WHERE s.title_id = r.title_id AND s.site = r.site;
    END IF;
    UPDATE title_sites s
    SET site_id = r.site_id, id_source = 'joined', id_confidence = NULL, id_verified = false, failures = 0
    FROM records r
    WHERE r.title_id = ANY (ids) AND s.title_id = r.title_id AND s.site = r.site AND s.site_id IS DISTINCT FROM r.site_id;

    WITH gone AS (
        DELETE FROM titles t
        WHERE t.title_id = ANY (ids) AND t.imdb_id IS NULL
            AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id)
            AND NOT EXISTS (SELECT FROM title_sites s WHERE s.title_id = t.title_id AND s.site_id IS NOT NULL)
        RETURNING t.title_id
    )
    DELETE FROM title_sites s USING gone g WHERE s.title_id = g.title_id;
END
$$;

-- Makes one record of two that are the same page under an older and a newer id. Returns whether there were two.
CREATE FUNCTION rename_record(of_site site, former text, current text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    old records;
    new records;
BEGIN
    PERFORM lock_titles();
    SELECT * INTO old FROM records WHERE site = of_site AND site_id = former;
    SELECT * INTO new FROM records WHERE site = of_site AND site_id = current;
    IF old.record_id IS NULL OR new.record_id IS NULL OR old.record_id = new.record_id THEN
        RETURN false;
    END IF;
    INSERT INTO score_history (record_id, kind, since, value, count)
    SELECT new.record_id, kind, since, value, count FROM score_history WHERE record_id = old.record_id
    ON CONFLICT DO NOTHING;
    DELETE FROM records WHERE record_id = old.record_id;
    UPDATE records SET title_id = old.title_id, placed_by_hand = old.placed_by_hand WHERE record_id = new.record_id;
    PERFORM settle_titles(ARRAY[old.title_id, new.title_id]);
    RETURN true;
END
$$;

-- As before; the catalogue comes after.
CREATE OR REPLACE FUNCTION move_record(of_site site, of_id text, target bigint DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    former bigint;
BEGIN
    PERFORM lock_titles();
    SELECT title_id INTO former FROM records WHERE site = of_site AND site_id = of_id;
    IF former IS NULL THEN
        RAISE EXCEPTION 'there is no record % of %', of_id, of_site;
    END IF;
    IF EXISTS (SELECT FROM records WHERE title_id = target AND site = of_site AND site_id <> of_id) THEN
        RAISE EXCEPTION 'title % has another record of % already; move that one first', target, of_site;
    END IF;
    IF target IS NULL THEN
        INSERT INTO titles DEFAULT VALUES RETURNING title_id INTO target;
    END IF;
    UPDATE records SET title_id = target, placed_by_hand = true WHERE site = of_site AND site_id = of_id;
    UPDATE titles SET matched_by = array_append(matched_by, 'placed by hand')
    WHERE title_id = target AND EXISTS (SELECT FROM records WHERE title_id = target AND site <> of_site);
    UPDATE titles SET matched_by =
        CASE WHEN (SELECT count(*) FROM records WHERE title_id = former) = 1 THEN '{}' ELSE '{placed by hand}'::text[] END
    WHERE title_id = former;
    PERFORM settle_titles(ARRAY[former, target]);
    RETURN target;
END
$$;
