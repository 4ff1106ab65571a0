-- What Postgres knows of records and titles: functions, and the view of items. They are replaced
-- with each version of the schema.

-- The title of a series by its id on a site; null when it is not known.
CREATE OR REPLACE FUNCTION title_of_series(of_site site, of_id text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        (SELECT coalesce(r.title_id, newer.title_id)
         FROM records r
         LEFT JOIN records newer ON newer.record_id = r.newer_id
         WHERE r.site = of_site AND r.site_id = of_id AND NOT is_part(r.kind, r.series_id)),
        (SELECT t.title_id FROM titles t
         WHERE of_site = 'imdb' AND t.imdb_id = of_id AND t.season IS NULL))
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
        SELECT r.title_id, title_of_series(r.site, r.series_id) AS series,
            r.season, r.episode, r.kind
        FROM records r
        WHERE r.title_id = ANY (ids) AND is_part(r.kind, r.series_id)
        UNION
        SELECT r.title_id, title_of_series(r.site, r.series_id), r.season, r.episode, r.kind
        FROM (
            SELECT s.site, s.site_id FROM records s WHERE s.title_id = ANY (ids)
            UNION
            SELECT older.site, older.site_id
            FROM records s
            JOIN records older ON older.newer_id = s.record_id
            WHERE s.title_id = ANY (ids)
            UNION
            SELECT 'imdb', n.imdb_id FROM titles n
            WHERE n.title_id = ANY (ids) AND n.imdb_id IS NOT NULL
        ) of JOIN records r ON r.site = of.site AND r.series_id = of.site_id
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
        SELECT DISTINCT ON (title_id) * FROM records WHERE title_id = ANY (ids)
        ORDER BY title_id, array_position('{imdb,rottentomatoes,metacritic}'::site[], site)
    ) r
    WHERE r.title_id = t.title_id AND t.title IS NULL;

    -- An id that another title has is moved below, with its state.
    INSERT INTO title_sites (title_id, site, popularity, next_due, site_id, id_source)
    SELECT t.title_id, s.site, t.popularity,
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
    FROM titles t CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
    LEFT JOIN records r ON r.title_id = t.title_id AND r.site = s.site
    WHERE t.title_id = ANY (ids)
        AND (r.record_id IS NOT NULL
            OR NOT is_part(t.kind, t.series_title_id::text)
            AND (t.imdb_id IS NOT NULL
                OR EXISTS (SELECT FROM records o WHERE o.title_id = t.title_id)))
        AND NOT EXISTS (
            SELECT FROM title_sites known
            WHERE known.title_id = t.title_id AND known.site = s.site)
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

    WITH gone AS (
        DELETE FROM titles t
        WHERE t.title_id = ANY (ids) AND t.imdb_id IS NULL
            AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id)
            AND NOT EXISTS (
                SELECT FROM title_sites s WHERE s.title_id = t.title_id AND s.site_id IS NOT NULL)
        RETURNING t.title_id
    ), orphaned AS (
        UPDATE titles t SET series_title_id = NULL FROM gone g WHERE t.series_title_id = g.title_id
    )
    DELETE FROM title_sites s USING gone g WHERE s.title_id = g.title_id;
END
$$;

-- Corrects a match: makes a record part of another title, or of a new one when none is named, for
-- good. Returns the title. A title that is left without records is removed. The id counts as given
-- by hand: no import, list or page gives it to another title.
--
--     SELECT move_record(
--         'rottentomatoes', 'm/some_slug',
--         (SELECT title_id FROM records WHERE site = 'imdb' AND site_id = 'tt1234567'));
CREATE OR REPLACE FUNCTION move_record(of_site site, of_id text, target bigint DEFAULT NULL)
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
    UPDATE titles SET matched_by = array_append(matched_by, 'placed by hand')
    WHERE title_id = target
        AND EXISTS (SELECT FROM records WHERE title_id = target AND site <> of_site);
    UPDATE titles SET matched_by = CASE
        WHEN (SELECT count(*) FROM records WHERE title_id = former) = 1 THEN '{}'
        ELSE '{placed by hand}'::text[]
    END
    WHERE title_id = former;
    PERFORM sync_catalogue(ARRAY[former, target]);
    UPDATE title_sites SET id_source = 'given', id_verified = true
    WHERE title_id = target AND site = of_site AND site_id = of_id;
    RETURN target;
END
$$;

-- Each record as the item that was scraped, in the JSON form of moviecrawler.items.Movie.
CREATE OR REPLACE VIEW items AS
SELECT r.record_id, r.title_id, r.placed_by_hand, r.site, r.site_id,
    r.facets
    || to_jsonb(r) - '{record_id,title_id,newer_id,placed_by_hand,match_keys,facets}'::text[]
    || jsonb_build_object(
        'credits', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'name', c.name, 'role', c.role, 'position', c.position,
                'person_id', p.site_person_id, 'character', c.character)
                ORDER BY c.role, c.position), '[]')
            FROM credits c JOIN people p USING (person_id) WHERE c.record_id = r.record_id),
        'scores', (
            SELECT coalesce(jsonb_agg(
                jsonb_strip_nulls(to_jsonb(s) - '{record_id,normalised}'::text[])
                ORDER BY s.kind), '[]')
            FROM scores s WHERE s.record_id = r.record_id),
        'offers', (
            SELECT coalesce(jsonb_agg(
                jsonb_strip_nulls(to_jsonb(o) - '{record_id,since}'::text[])
                ORDER BY o.kind, o.provider, o.country, o.quality), '[]')
            FROM offers o WHERE o.record_id = r.record_id)) AS item
FROM records r;
