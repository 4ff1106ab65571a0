-- What Postgres knows of records and titles: functions, and the indexes that need them. They are
-- replaced whenever this text changes.

-- The texts of a JSON array, by the name that SQLite has for them: queries are the same in both.
CREATE OR REPLACE FUNCTION json_each(texts jsonb) RETURNS TABLE (value text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT jsonb_array_elements_text(texts) $$;

CREATE OR REPLACE FUNCTION json_append(texts jsonb, text) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT texts || to_jsonb($2) $$;

CREATE OR REPLACE AGGREGATE json_group_array(text) (
    SFUNC = json_append, STYPE = jsonb, INITCOND = '[]', PARALLEL = SAFE);

-- The words of a title in the form that `dashboard.search` searches: without accents, and with
-- spaces for ASCII punctuation. An index is built with pg_catalog alone in the search path, so only
-- its functions are used. ASCII titles, which most are, skip the search for accents.
CREATE OR REPLACE FUNCTION title_words(title text, original_title text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 20 AS $$
    SELECT to_tsvector('pg_catalog.simple', translate(
        CASE
            WHEN octet_length(coalesce(title, '') || coalesce(original_title, ''))
                = length(coalesce(title, '') || coalesce(original_title, ''))
            THEN coalesce(title, '') || ' ' || coalesce(original_title, '')
            ELSE regexp_replace(
                normalize(coalesce(title, '') || ' ' || coalesce(original_title, ''), NFKD),
                '[\u0300-\u036f]', '', 'g')
        END, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
$$;

-- Keywords in the form that is compared: sites write them with spaces or hyphens.
CREATE OR REPLACE FUNCTION plain_keywords(keywords jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ARRAY(
    SELECT lower(replace(k, '-', ' ')) FROM jsonb_array_elements_text(keywords) k) $$;

CREATE UNIQUE INDEX IF NOT EXISTS titles_imdb_id ON titles (imdb_id) WHERE imdb_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS titles_words
    ON titles USING gin (title_words(title, original_title));
-- Finds a title by its exact text where many titles have its words. A hash index takes texts of any
-- length.
CREATE INDEX IF NOT EXISTS titles_exact ON titles USING hash (lower(title));
-- fastupdate = off: every search would read the whole list of pending entries.
CREATE INDEX IF NOT EXISTS records_match_keys
    ON records USING gin (match_keys) WITH (fastupdate = off);
CREATE INDEX IF NOT EXISTS records_keywords ON records USING gin (plain_keywords(keywords))
    WITH (fastupdate = off) WHERE keywords <> '[]';
CREATE INDEX IF NOT EXISTS records_interests ON records USING gin (interests)
    WITH (fastupdate = off) WHERE interests <> '[]';

-- Lets one transaction at a time write records, titles, people and what belongs to them; the others
-- wait until it ends. It must be called before any row is locked, so that writers can't deadlock.
-- The next statement sees everything that others have committed.
CREATE OR REPLACE FUNCTION lock_titles() RETURNS void LANGUAGE sql AS
$$ SELECT pg_advisory_xact_lock(7303170117561344001) $$;

-- Whether a record is a season, an episode, or something else of a series.
CREATE OR REPLACE FUNCTION is_part(kind text, series_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT series_id IS NOT NULL OR kind IN ('season', 'episode') $$;

-- A title as the scoreboard shows it.
CREATE OR REPLACE FUNCTION title_shown(id bigint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        (SELECT r.title FROM records r JOIN sites o USING (site) WHERE r.title_id = id
         ORDER BY o.authority LIMIT 1),
        (SELECT t.title FROM titles t WHERE t.title_id = id))
$$;

-- Boosts titles on all sites: they are fetched first, now or a week after the last success or
-- absence. A title whose id on a site was never searched is searched at once. Returns how many of
-- the titles are known.
CREATE OR REPLACE FUNCTION boost_title_ids(ids bigint[], weight real, at timestamptz) RETURNS bigint
LANGUAGE sql AS $$
    WITH boosted AS (
        UPDATE title_sites s
        SET boost = s.boost + weight,
            boost_due = least(s.boost_due, greatest(at, s.last_success + interval '7 days',
                CASE WHEN s.state = 'absent' THEN s.next_due - interval '83 days' END)),
            next_due = CASE
                WHEN s.site_id IS NULL AND s.state = 'never' THEN 'epoch'
                ELSE s.next_due
            END
        WHERE s.title_id = ANY (ids)
        RETURNING s.title_id
    )
    SELECT count(DISTINCT title_id) FROM boosted
$$;

-- The same by IMDb ids, for people and other programs. It waits for imports, which lock the same
-- rows in another order.
--
--     SELECT boost_titles('{tt0111161}');
CREATE OR REPLACE FUNCTION boost_titles(
    imdb_ids text[], weight real DEFAULT 1, at timestamptz DEFAULT now()) RETURNS bigint
LANGUAGE sql AS $$
    SELECT lock_titles();
    SELECT boost_title_ids(
        ARRAY(SELECT title_id FROM titles WHERE imdb_id = ANY (imdb_ids)), weight, at)
$$;

-- How often a title is fetched: every 14 days until it is 180 days old, then, or if its age is
-- unknown, every 90. A series is as old as the newest of its seasons and episodes, and is fetched
-- every 7 days for two years after that, unless it ended before this year. `released` is the date
-- on the title's page.
CREATE OR REPLACE FUNCTION fetch_interval(id bigint, released date, at timestamptz) RETURNS interval
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN kind = 'series' AND newest > at::date - 730
            AND coalesce(end_year >= extract(year FROM at), true)
        THEN interval '7 days'
        WHEN newest > at::date - 180 THEN interval '14 days'
        ELSE interval '90 days'
    END
    FROM (
        SELECT t.kind, t.end_year, greatest(
            coalesce(released, make_date(t.year, 12, 31)),
            (SELECT make_date(max(p.year), 12, 31) FROM titles p WHERE p.series_title_id = id),
            (SELECT make_date(max(e.year), 12, 31) FROM imdb_episodes e
             WHERE e.series_imdb_id = t.imdb_id)
        ) AS newest
        FROM titles t WHERE t.title_id = id
    ) known
$$;

-- Updates the catalogue after records were written or moved: call it with the titles that have or
-- had them. A season or an episode of a site is a title of its own, on that site alone; the views
-- `season_scores` and `episode_scores` group them by series and number.
CREATE OR REPLACE FUNCTION sync_catalogue(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former record;
    alone  bigint;
    moved  title_sites[];
BEGIN
    -- A record that has become a part of a series gets a title of its own.
    FOR former IN
        SELECT r.record_id FROM records r
        WHERE r.title_id = ANY (ids) AND is_part(r.kind, r.series_id)
            AND EXISTS (
                SELECT FROM records o WHERE o.title_id = r.title_id AND o.record_id <> r.record_id)
    LOOP
        INSERT INTO titles DEFAULT VALUES RETURNING title_id INTO alone;
        UPDATE records SET title_id = alone WHERE record_id = former.record_id;
        ids := ids || alone;
    END LOOP;
    -- Parts follow a series that is new or has got another title.
    UPDATE titles t
    SET series_title_id = p.series, season = p.season, episode = p.episode, kind = p.kind
    FROM (
        SELECT r.title_id, r.season, r.episode, r.kind, coalesce(
            (SELECT coalesce(s.title_id, newer.title_id)
             FROM records s
             LEFT JOIN records newer ON newer.record_id = s.newer_id
             WHERE s.site = r.site AND s.site_id = r.series_id
                 AND NOT is_part(s.kind, s.series_id)),
            (SELECT n.title_id FROM titles n
             WHERE r.site = 'imdb' AND n.imdb_id = r.series_id AND n.season IS NULL)) AS series
        FROM records r
        WHERE r.record_id IN (
            SELECT record_id FROM records
            WHERE title_id = ANY (ids) AND is_part(kind, series_id)
            UNION
            SELECT part.record_id
            FROM (
                SELECT s.site, s.site_id FROM records s WHERE s.title_id = ANY (ids)
                UNION
                SELECT older.site, older.site_id
                FROM records s
                JOIN records older ON older.newer_id = s.record_id
                WHERE s.title_id = ANY (ids)
                UNION
                SELECT 'imdb', n.imdb_id FROM titles n WHERE n.title_id = ANY (ids)
            ) of JOIN records part ON part.site = of.site AND part.series_id = of.site_id
        )
    ) p
    WHERE t.title_id = p.title_id
        AND (t.series_title_id, t.season, t.episode, t.kind)
            IS DISTINCT FROM (p.series, p.season, p.episode, p.kind);

    -- An IMDb id belongs to the title that has its record.
    FOR former IN
        SELECT t.*, r.title_id AS target FROM records r JOIN titles t ON t.imdb_id = r.site_id
        WHERE r.title_id = ANY (ids) AND r.site = 'imdb' AND t.title_id <> r.title_id
    LOOP
        UPDATE titles SET imdb_id = NULL, tmdb_id = NULL, tmdb_series_id = NULL
        WHERE title_id = former.title_id;
        UPDATE titles SET imdb_id = former.imdb_id, tmdb_id = former.tmdb_id,
            tmdb_series_id = former.tmdb_series_id, popularity = former.popularity,
            popularity_source = former.popularity_source, votes = former.votes
        WHERE title_id = former.target;
        UPDATE title_sites SET popularity = former.popularity WHERE title_id = former.target;
        ids := ids || former.title_id;
    END LOOP;
    UPDATE titles t SET imdb_id = r.site_id
    FROM records r
    WHERE r.title_id = ANY (ids) AND r.title_id = t.title_id AND r.site = 'imdb'
        AND t.imdb_id IS DISTINCT FROM r.site_id;

    UPDATE titles t
    SET title = r.title, original_title = r.original_title, kind = r.kind, year = r.year,
        runtime_minutes = r.runtime_minutes
    FROM (
        SELECT DISTINCT ON (title_id) * FROM records JOIN sites USING (site)
        WHERE title_id = ANY (ids)
        ORDER BY title_id, authority
    ) r
    WHERE r.title_id = t.title_id AND t.title IS NULL;

    -- An id that another title has is moved below, with its state.
    INSERT INTO title_sites (title_id, site, popularity, next_due, site_id, id_source)
    SELECT t.title_id, lacking.site, t.popularity,
        -- covered_by_series.sql sets when a season of a series' page is due; if that never happens,
        -- its own page is due a day later.
        CASE
            WHEN r.source = 'list' AND r.kind = 'season' THEN r.scraped_at + interval '1 day'
            ELSE 'epoch'
        END,
        -- count(*), as the planner would answer EXISTS by reading the whole table.
        CASE WHEN (
            SELECT count(*) FROM title_sites o WHERE o.site = r.site AND o.site_id = r.site_id
        ) = 0 THEN r.site_id END,
        CASE WHEN r.site_id IS NOT NULL THEN 'joined'::id_source END
    FROM (
        SELECT given.title_id, s.site FROM unnest(ids) AS given (title_id) CROSS JOIN sites s
        EXCEPT
        SELECT title_id, site FROM title_sites WHERE title_id = ANY (ids)
    ) lacking
    JOIN titles t USING (title_id)
    LEFT JOIN records r ON r.title_id = t.title_id AND r.site = lacking.site
    WHERE r.record_id IS NOT NULL
        OR NOT is_part(t.kind, t.series_title_id::text)
        AND (t.imdb_id IS NOT NULL
            OR EXISTS (SELECT FROM records o WHERE o.title_id = t.title_id))
    ON CONFLICT DO NOTHING;
    -- A season is as popular as its series.
    UPDATE title_sites s SET popularity = of.popularity
    FROM titles t JOIN titles of ON of.title_id = t.series_title_id
    WHERE (t.title_id = ANY (ids) OR of.title_id = ANY (ids)) AND s.title_id = t.title_id
        AND s.popularity <> of.popularity;

    -- An id follows its record, together with its state.
    SELECT array_agg(s) INTO moved
    FROM records r
    JOIN title_sites s ON s.site = r.site AND s.site_id = r.site_id AND s.title_id <> r.title_id
    WHERE r.title_id = ANY (ids);
    IF moved IS NOT NULL THEN
        UPDATE title_sites s
        SET site_id = NULL,
            id_source = NULL,
            id_confidence = NULL,
            id_verified = false,
            state = 'never',
            last_success = NULL,
            failures = 0
        FROM unnest(moved) m WHERE s.title_id = m.title_id AND s.site = m.site;
        UPDATE title_sites s
        SET site_id = m.site_id,
            id_source = m.id_source,
            id_confidence = m.id_confidence,
            id_verified = m.id_verified,
            state = m.state,
            last_success = m.last_success,
            next_due = m.next_due,
            failures = m.failures
        FROM unnest(moved) m JOIN records r ON r.site = m.site AND r.site_id = m.site_id
        WHERE s.title_id = r.title_id AND s.site = r.site;
    END IF;
    UPDATE title_sites s
    SET site_id = r.site_id,
        id_source = 'joined',
        id_confidence = NULL,
        id_verified = false,
        failures = 0
    FROM records r
    WHERE r.title_id = ANY (ids) AND s.title_id = r.title_id AND s.site = r.site
        AND s.site_id IS DISTINCT FROM r.site_id;

    DELETE FROM title_sites s
    WHERE s.site_id IS NULL AND s.title_id = ANY (ARRAY(
        SELECT t.title_id FROM titles t
        WHERE t.title_id = ANY (ids) AND is_part(t.kind, t.series_title_id::text)));

    DELETE FROM titles t
    WHERE t.title_id = ANY (ids) AND t.imdb_id IS NULL
        AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id)
        AND NOT EXISTS (
            SELECT FROM title_sites s WHERE s.title_id = t.title_id AND s.site_id IS NOT NULL);
END
$$;

-- Corrects a match: makes a record part of another title, or of a new one when none is named, for
-- good. Returns the title. A title that is left without records is removed. The id counts as given
-- by hand: no import, list or page gives it to another title.
--
--     SELECT move_record('SITE', 'ID',
--         (SELECT title_id FROM records WHERE site = 'imdb' AND site_id = 'tt1234567'));
CREATE OR REPLACE FUNCTION move_record(of_site text, of_id text, target bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    former bigint;
BEGIN
    PERFORM lock_titles();
    SELECT title_id INTO former FROM records WHERE site = of_site AND site_id = of_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no record % of %', of_id, of_site;
    END IF;
    IF former IS NULL THEN
        RAISE EXCEPTION '% of % belongs to a newer record of its title; move that', of_id, of_site;
    END IF;
    IF EXISTS (
        SELECT FROM records r
        WHERE site = of_site AND site_id = of_id AND is_part(r.kind, r.series_id)
    ) THEN
        RAISE EXCEPTION '% of % follows its series; move that', of_id, of_site;
    END IF;
    IF EXISTS (
        SELECT FROM records WHERE title_id = target AND site = of_site AND site_id <> of_id
    ) THEN
        RAISE EXCEPTION 'title % has another record of % already; move that one first',
            target, of_site;
    END IF;
    IF target IS NULL THEN
        INSERT INTO titles DEFAULT VALUES RETURNING title_id INTO target;
    END IF;
    UPDATE records SET title_id = target, placed_by_hand = true
    WHERE site = of_site AND site_id = of_id;
    UPDATE titles SET matched_by = matched_by || '"placed by hand"'
    WHERE title_id = target
        AND EXISTS (SELECT FROM records WHERE title_id = target AND site <> of_site);
    UPDATE titles SET matched_by = CASE
        WHEN (SELECT count(*) FROM records WHERE title_id = former) = 1 THEN '[]'
        ELSE '["placed by hand"]'::jsonb
    END
    WHERE title_id = former;
    PERFORM sync_catalogue(ARRAY[former, target]);
    UPDATE title_sites SET id_source = 'given', id_verified = true
    WHERE site = of_site AND site_id = of_id;
    RETURN target;
END
$$;

