-- additive
-- Seasons and episodes: which series each is of, and which number it has there.
--
-- A season's or an episode's records of two sites are one title when their series' records are one title and the numbers are the same,
-- whatever their own titles are. `settle_titles` sees to it, so that seasons follow when records of their series are joined, parted, or moved
-- by hand. A record that was placed by hand itself stays where it is.

-- PostgreSQL takes a new value of a type only when the transaction that adds it has ended: below, kinds are compared as texts.
ALTER TYPE title_kind ADD VALUE 'season' AFTER 'series';

-- The version before compares records by JSON of its own making, and can't read that value. It takes a season for a series, as in `items`.
CREATE FUNCTION kind_as_json(kind title_kind) RETURNS json LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT to_json(CASE WHEN kind::text = 'season' THEN 'series' ELSE kind::text END) $$;
CREATE CAST (title_kind AS json) WITH FUNCTION kind_as_json(title_kind);

ALTER TABLE records
    ADD COLUMN season_count  integer CHECK (season_count > 0),  -- of a series, as its site counts them
    ADD COLUMN episode_count integer CHECK (episode_count > 0),  -- of a series or season, likewise
    ADD COLUMN critic_review_count integer CHECK (critic_review_count > 0),  -- reviews elsewhere to which IMDb links
    ADD COLUMN absent_counts text[] NOT NULL DEFAULT '{}';  -- which of these are stated to be absent; other nulls are silent

ALTER TABLE titles
    -- Of titles, as `title_sites.title_id`. Null: no series, or one that no site's page was read of yet.
    ADD COLUMN series_title_id bigint,
    ADD COLUMN season  integer,  -- the number of a season, or of an episode's
    ADD COLUMN episode integer;  -- its number in the season

CREATE INDEX records_series ON records (series_id, site, season, coalesce(episode, -1)) WHERE series_id IS NOT NULL;
CREATE INDEX titles_series ON titles (series_title_id, season, episode) WHERE series_title_id IS NOT NULL;

-- Whether a record is a season, an episode, or something else of a series.
CREATE FUNCTION is_part(kind title_kind, series_id text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT series_id IS NOT NULL OR kind::text IN ('season', 'episode') $$;

-- The title that a site's id of a series is that of; null when it is not known.
CREATE FUNCTION title_of_series(of_site site, of_id text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        (SELECT r.title_id FROM records r WHERE r.site = of_site AND r.site_id = of_id AND NOT is_part(r.kind, r.series_id)),
        (SELECT t.title_id FROM titles t WHERE of_site = 'imdb' AND t.imdb_id = of_id AND t.season IS NULL))
$$;

-- Gives the records of seasons and episodes to the titles that they belong to: those of these titles, and of the series among them. Returns
-- the titles, with those that have lost or gained a record. Call it under `lock_titles`.
CREATE FUNCTION settle_parts(ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    touched bigint[];  -- records
    part    record;  -- records that belong together
    taken   bigint[] := '{}';  -- titles that have been given to some
    moved   bigint[] := '{}';  -- records
    targets bigint[] := '{}';  -- the titles that they go to
    target  bigint;
    own     bigint;
BEGIN
    SELECT array_agg(DISTINCT x.record_id) INTO touched FROM (
        SELECT r.record_id FROM records r WHERE r.title_id = ANY (ids) AND is_part(r.kind, r.series_id)
        UNION ALL
        -- Of series that have become another title.
        SELECT p.record_id
        FROM (
            SELECT r.site, r.site_id, r.title_id FROM records r WHERE r.title_id = ANY (ids) AND NOT is_part(r.kind, r.series_id)
            UNION ALL
            SELECT 'imdb', t.imdb_id, t.title_id FROM titles t WHERE t.title_id = ANY (ids) AND t.imdb_id IS NOT NULL
        ) s
        JOIN records p ON p.site = s.site AND p.series_id = s.site_id
        JOIN titles t ON t.title_id = p.title_id
        WHERE t.series_title_id IS DISTINCT FROM s.title_id
    ) x;

    IF touched IS NOT NULL THEN
        ids := ids || ARRAY(SELECT r.title_id FROM records r WHERE r.record_id = ANY (touched));
        FOR part IN
            WITH parts AS MATERIALIZED (  -- with those that stand beside them
                SELECT o.record_id, o.title_id, o.site, o.kind, o.season, o.episode, o.placed_by_hand,
                    title_of_series(o.site, o.series_id) AS series
                FROM records o
                WHERE o.title_id IN (SELECT r.title_id FROM records r WHERE r.record_id = ANY (touched))
                    AND is_part(o.kind, o.series_id)
            ), numbers AS (
                SELECT DISTINCT series, kind, season, coalesce(episode, -1) AS episode FROM parts
                WHERE series IS NOT NULL AND season IS NOT NULL
                    AND (kind::text = 'season' AND episode IS NULL OR kind::text = 'episode' AND episode IS NOT NULL)
            ), members AS (
                SELECT n.*, p.record_id, p.title_id, p.site,
                    row_number() OVER (PARTITION BY n.series, n.kind, n.season, n.episode, p.site ORDER BY p.record_id) AS nth
                FROM numbers n
                CROSS JOIN LATERAL (
                    SELECT r.site, r.site_id FROM records r WHERE r.title_id = n.series
                    UNION
                    SELECT 'imdb', t.imdb_id FROM titles t WHERE t.title_id = n.series AND t.imdb_id IS NOT NULL
                ) s
                CROSS JOIN LATERAL (
                    SELECT r.record_id, r.title_id, r.site FROM records r
                    WHERE r.site = s.site AND r.series_id = s.site_id AND r.season = n.season AND coalesce(r.episode, -1) = n.episode
                        AND r.kind = n.kind AND NOT r.placed_by_hand
                    OFFSET 0  -- by the index for each, whatever the planner thinks of how many there are
                ) p
                -- An id that the title is known by may be that of a record that has just gone to another one.
                WHERE title_of_series(s.site, s.site_id) = n.series
            ), groups AS (
                SELECT m.series, array_agg(m.record_id ORDER BY a.place) AS records,
                    array_agg(m.title_id ORDER BY a.place) AS titles, array_agg(m.site ORDER BY a.place) AS sites
                FROM members m
                CROSS JOIN LATERAL (
                    -- A record that was placed by hand keeps what it was placed beside.
                    SELECT (NOT EXISTS (SELECT FROM records h WHERE h.title_id = m.title_id AND h.placed_by_hand),
                        array_position('{imdb,rottentomatoes,metacritic}'::site[], m.site)) AS place
                ) a
                WHERE m.nth = 1 GROUP BY m.series, m.kind, m.season, m.episode
                UNION ALL
                -- A second one of a site that has the same number, or one whose series or number is not known, stands alone.
                SELECT p.series, ARRAY[p.record_id], ARRAY[p.title_id], ARRAY[p.site]
                FROM (
                    SELECT series, record_id, title_id, site FROM parts WHERE NOT placed_by_hand
                    UNION SELECT series, record_id, title_id, site FROM members  -- that stood in the place of one that has its number now
                ) p
                WHERE p.record_id NOT IN (SELECT m.record_id FROM members m WHERE m.nth = 1)
            )
            SELECT g.*
            FROM groups g
            WHERE (SELECT count(DISTINCT title) FROM unnest(g.titles) title) > 1
                OR EXISTS (SELECT FROM records f WHERE f.title_id = ANY (g.titles) AND f.record_id <> ALL (g.records)
                    AND (NOT f.placed_by_hand OR f.site = ANY (g.sites)))
            -- A title stays with the series that it is of, and with those that belong together.
            ORDER BY (SELECT t.series_title_id FROM titles t WHERE t.title_id = g.titles[1]) IS DISTINCT FROM g.series,
                cardinality(g.records) = 1, g.records
        LOOP
            target := NULL;
            ids := ids || part.titles;
            FOR place IN 1 .. cardinality(part.records) LOOP
                own := part.titles[place];
                -- What is no part of a series, such as a page that was taken for one, keeps its title.
                IF own = ANY (taken) OR EXISTS (
                    SELECT FROM records f WHERE f.title_id = own AND NOT f.placed_by_hand AND NOT is_part(f.kind, f.series_id))
                THEN
                    own := NULL;
                END IF;
                IF target IS NULL THEN
                    target := own;
                    IF target IS NULL THEN
                        INSERT INTO titles DEFAULT VALUES RETURNING title_id INTO target;
                    END IF;
                    taken := taken || target;
                END IF;
                -- A record that was placed by hand keeps its place from others of its site.
                IF NOT EXISTS (SELECT FROM records h WHERE h.title_id = target AND h.placed_by_hand AND h.site = part.sites[place]) THEN
                    own := target;
                ELSIF own IS NULL OR own = target THEN
                    INSERT INTO titles DEFAULT VALUES RETURNING title_id INTO own;
                END IF;
                taken := taken || own;
                IF own <> part.titles[place] THEN
                    moved := moved || part.records[place];
                    targets := targets || own;
                END IF;
            END LOOP;
        END LOOP;
        UPDATE records r SET title_id = m.target
        FROM unnest(moved, targets) AS m (record_id, target) WHERE r.record_id = m.record_id;
        ids := ids || targets;
    END IF;

    UPDATE titles t
    SET series_title_id = p.series, season = p.season, episode = p.episode, kind = p.kind,
        matched_by = CASE WHEN p.by_hand THEN t.matched_by
            ELSE array_fill('same series, season ' || p.season || coalesce(', episode ' || p.episode, ''), ARRAY[p.records - 1]) END
    FROM (
        SELECT DISTINCT ON (r.title_id) r.title_id, s.series, r.season, r.episode, r.kind,
            count(*) OVER (PARTITION BY r.title_id)::integer AS records,
            bool_or(r.placed_by_hand) OVER (PARTITION BY r.title_id) AS by_hand
        FROM records r CROSS JOIN LATERAL title_of_series(r.site, r.series_id) AS s (series)
        WHERE r.title_id = ANY (ids) AND is_part(r.kind, r.series_id)
        ORDER BY r.title_id, r.placed_by_hand, s.series IS NULL,
            array_position('{imdb,rottentomatoes,metacritic}'::site[], r.site)
    ) p
    WHERE t.title_id = p.title_id
        AND ((t.series_title_id, t.season, t.episode, t.kind) IS DISTINCT FROM (p.series, p.season, p.episode, p.kind)
            OR NOT p.by_hand AND cardinality(t.matched_by) <> p.records - 1);

    UPDATE titles t SET series_title_id = NULL, season = NULL, episode = NULL
    WHERE t.title_id = ANY (ids) AND (t.series_title_id IS NOT NULL OR t.season IS NOT NULL)
        AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id AND is_part(r.kind, r.series_id));
    RETURN ids;
END
$$;

-- As before. Seasons and episodes come to their titles first. They are on those sites only whose records they have: on another one, a season is
-- found by its number when its series is read there.
CREATE OR REPLACE FUNCTION settle_titles(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former record;
    moved title_sites[];
BEGIN
    ids := settle_parts(ids);

    -- Known by an IMDb id is the title that has its record.
    FOR former IN
        SELECT t.*, r.title_id AS target FROM records r JOIN titles t ON t.imdb_id = r.site_id
        WHERE r.title_id = ANY (ids) AND r.site = 'imdb' AND t.title_id <> r.title_id
    LOOP
        UPDATE titles SET imdb_id = NULL, tmdb_id = NULL, tmdb_series_id = NULL WHERE title_id = former.title_id;
        UPDATE titles SET imdb_id = former.imdb_id, tmdb_id = former.tmdb_id,
            tmdb_series_id = former.tmdb_series_id, popularity = former.popularity,
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

    INSERT INTO title_sites (title_id, site, popularity, next_due)
    SELECT t.title_id, s.site, t.popularity,
        -- What the page of a series told of a season is noted soon after; a day later its own page is due, if that never happened.
        coalesce((SELECT r.scraped_at + interval '1 day' FROM records r
            WHERE r.title_id = t.title_id AND r.site = s.site AND r.source = 'list' AND r.kind::text = 'season'), 'epoch')
    FROM titles t CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
    WHERE t.title_id = ANY (ids)
        AND CASE WHEN is_part(t.kind, t.series_title_id::text)
            THEN EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id AND r.site = s.site)
            ELSE t.imdb_id IS NOT NULL OR EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id) END
        AND NOT EXISTS (SELECT FROM title_sites known WHERE known.title_id = t.title_id AND known.site = s.site)
    ON CONFLICT DO NOTHING;
    -- A season is as popular as its series.
    UPDATE title_sites s SET popularity = of.popularity
    FROM titles t JOIN titles of ON of.title_id = t.series_title_id
    WHERE t.title_id = ANY (ids) AND s.title_id = t.title_id AND s.popularity <> of.popularity;

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

    DELETE FROM title_sites s USING titles t
    WHERE s.title_id = ANY (ids) AND s.site_id IS NULL AND t.title_id = s.title_id AND is_part(t.kind, t.series_title_id::text);

    WITH gone AS (
        DELETE FROM titles t
        WHERE t.title_id = ANY (ids) AND t.imdb_id IS NULL
            AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id)
            AND NOT EXISTS (SELECT FROM title_sites s WHERE s.title_id = t.title_id AND s.site_id IS NOT NULL)
        RETURNING t.title_id
    ), orphaned AS (
        UPDATE titles t SET series_title_id = NULL FROM gone g WHERE t.series_title_id = g.title_id
    )
    DELETE FROM title_sites s USING gone g WHERE s.title_id = g.title_id;
END
$$;

-- As before; the seasons and episodes of a series go along.
CREATE OR REPLACE FUNCTION rename_record(of_site site, former text, current text) RETURNS boolean LANGUAGE plpgsql AS $$
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
    INSERT INTO score_history (record_id, kind, since, value, count, average)
    SELECT new.record_id, kind, since, value, count, average FROM score_history WHERE record_id = old.record_id
    ON CONFLICT DO NOTHING;
    INSERT INTO finer_score_history (record_id, kind, since, value, count, average)
    SELECT new.record_id, kind, since, value, count, average FROM finer_score_history WHERE record_id = old.record_id
    ON CONFLICT DO NOTHING;
    UPDATE offers n SET since = least(n.since, o.since) FROM offers o
    WHERE n.record_id = new.record_id AND o.record_id = old.record_id AND n.ended IS NULL AND o.ended IS NULL
        AND (n.provider, n.kind, coalesce(n.country, ''), coalesce(n.quality, ''))
            = (o.provider, o.kind, coalesce(o.country, ''), coalesce(o.quality, ''));
    UPDATE offers SET record_id = new.record_id WHERE record_id = old.record_id AND ended IS NOT NULL;
    UPDATE records SET series_id = current WHERE site = of_site AND series_id = former;
    DELETE FROM records WHERE record_id = old.record_id;
    UPDATE records SET title_id = old.title_id, placed_by_hand = old.placed_by_hand WHERE record_id = new.record_id;
    PERFORM settle_titles(ARRAY[old.title_id, new.title_id]);
    RETURN true;
END
$$;

-- As before, in the form of catalogue.stored: a season as the version before reads it, a series that has the number of a season; and counts.
CREATE OR REPLACE VIEW items AS
SELECT r.record_id, r.title_id, r.placed_by_hand, r.site, r.site_id,
    to_jsonb(r) - '{record_id,title_id,placed_by_hand,match_keys,season_count,episode_count,critic_review_count,absent_counts}'::text[]
        - CASE WHEN r.external_ids IS NULL THEN 'external_ids' ELSE '' END
    || jsonb_strip_nulls(jsonb_build_object('season_count', r.season_count, 'episode_count', r.episode_count,
        'critic_review_count', r.critic_review_count))
    || coalesce((SELECT jsonb_object_agg(a.name, NULL) FROM unnest(r.absent_counts) AS a (name)), '{}')
    || jsonb_build_object(
        'kind', CASE WHEN r.kind::text = 'season' AND r.season IS NOT NULL THEN 'series' ELSE r.kind::text END,
        'genres',
        (SELECT coalesce(jsonb_agg(g.name ORDER BY rg.position), '[]')
         FROM record_genres rg JOIN genres g USING (genre_id) WHERE rg.record_id = r.record_id),
        'credits',
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'name', c.name, 'role', c.role, 'position', c.position, 'person_id', p.site_person_id,
             'character', c.character) ORDER BY c.role, c.position), '[]')
         FROM credits c JOIN people p USING (person_id) WHERE c.record_id = r.record_id),
        'scores',
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(s) - '{record_id,normalised}'::text[]) ORDER BY s.kind), '[]')
         FROM scores s WHERE s.record_id = r.record_id),
        'finer_scores',
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(f) - 'record_id') ORDER BY f.kind), '[]')
         FROM finer_scores f WHERE f.record_id = r.record_id),
        'offers',
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(o) - '{record_id,since,ended}'::text[])
             ORDER BY o.kind, o.provider, o.country, o.quality), '[]')
         FROM offers o WHERE o.record_id = r.record_id AND o.ended IS NULL),
        'amounts',
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'kind', a.kind, 'value', a.value, 'currency', a.currency) ORDER BY a.kind), '[]')
         FROM amounts a WHERE a.record_id = r.record_id)) AS item
FROM records r;

-- Episodes that came before.
UPDATE titles t SET series_title_id = title_of_series(r.site, r.series_id), season = r.season, episode = r.episode
FROM records r WHERE r.title_id = t.title_id AND is_part(r.kind, r.series_id);

-- A title as the scoreboard shows it.
CREATE FUNCTION title_shown(id bigint) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        (SELECT r.title FROM records r WHERE r.title_id = id
         ORDER BY array_position('{imdb,rottentomatoes,metacritic}'::site[], r.site) LIMIT 1),
        (SELECT t.title FROM titles t WHERE t.title_id = id))
$$;

-- One row an episode: of IMDb's datasets, and of the pages that were read. Where both rate it, the rating of more votes is the newer one.
-- Ask for one series, by `series_title_id` or `series_imdb_id`: that reads its own episodes only.
CREATE VIEW episode_scores AS
SELECT e.series_title_id, e.series_title, e.series_imdb_id, e.season, e.episode, e.title_id,
    coalesce(e.title, i.title, r.title, m.title) AS title,
    coalesce(e.year, i.year, r.year, m.year) AS year,
    e.imdb_id, m.site_id AS metacritic_id, r.site_id AS rottentomatoes_id,
    CASE WHEN c.imdb_votes > e.votes OR e.rating IS NULL THEN c.imdb_rating ELSE e.rating END AS imdb_rating,
    CASE WHEN c.imdb_votes > e.votes OR e.rating IS NULL THEN c.imdb_votes ELSE e.votes END AS imdb_votes,
    c.metascore, c.metascore_reviews, c.metacritic_user_score, c.metacritic_user_ratings,
    c.tomatometer, c.tomatometer_reviews, c.popcornmeter, c.popcornmeter_ratings
FROM (
    SELECT s.title_id AS series_title_id, title_shown(s.title_id) AS series_title, s.imdb_id AS series_imdb_id, x.*
    FROM titles s
    CROSS JOIN LATERAL (
        SELECT e.season, e.episode, e.imdb_id, e.title, e.year, e.rating, e.votes, coalesce(
            (SELECT t.title_id FROM titles t WHERE t.imdb_id = e.imdb_id AND t.series_title_id = s.title_id),
            (SELECT t.title_id FROM titles t
             WHERE t.series_title_id = s.title_id AND t.season = e.season AND t.episode = e.episode AND t.imdb_id IS NULL
             ORDER BY t.title_id LIMIT 1)) AS title_id
        FROM imdb_episodes e WHERE e.series_imdb_id = s.imdb_id
        UNION ALL
        SELECT t.season, t.episode, t.imdb_id, NULL, NULL, NULL, NULL, t.title_id
        FROM titles t
        WHERE t.series_title_id = s.title_id AND t.kind::text = 'episode'
            AND NOT EXISTS (SELECT FROM imdb_episodes e WHERE e.series_imdb_id = s.imdb_id AND e.imdb_id = t.imdb_id)
            AND (t.imdb_id IS NOT NULL OR NOT EXISTS (
                SELECT FROM imdb_episodes e WHERE e.series_imdb_id = s.imdb_id AND e.season = t.season AND e.episode = t.episode))
    ) x
    WHERE s.kind::text IN ('series', 'other')
    UNION ALL
    -- Of a series that no page was read of yet.
    SELECT NULL, (SELECT min(r.series_title) FROM records r WHERE r.title_id = t.title_id), NULL, t.season, t.episode, t.imdb_id,
        NULL, NULL, NULL, NULL, t.title_id
    FROM titles t WHERE t.series_title_id IS NULL AND t.kind::text = 'episode'
) e
LEFT JOIN records i ON i.title_id = e.title_id AND i.site = 'imdb'
LEFT JOIN records r ON r.title_id = e.title_id AND r.site = 'rottentomatoes'
LEFT JOIN records m ON m.title_id = e.title_id AND m.site = 'metacritic'
CROSS JOIN LATERAL (
    SELECT max(x.value) FILTER (WHERE x.kind = 'imdb') AS imdb_rating, max(x.count) FILTER (WHERE x.kind = 'imdb') AS imdb_votes,
        max(x.value) FILTER (WHERE x.kind = 'metascore') AS metascore,
        max(x.count) FILTER (WHERE x.kind = 'metascore') AS metascore_reviews,
        max(x.value) FILTER (WHERE x.kind = 'metacritic_user') AS metacritic_user_score,
        max(x.count) FILTER (WHERE x.kind = 'metacritic_user') AS metacritic_user_ratings,
        max(x.value) FILTER (WHERE x.kind = 'tomatometer') AS tomatometer,
        max(x.count) FILTER (WHERE x.kind = 'tomatometer') AS tomatometer_reviews,
        max(x.value) FILTER (WHERE x.kind = 'popcornmeter') AS popcornmeter,
        max(x.count) FILTER (WHERE x.kind = 'popcornmeter') AS popcornmeter_ratings
    FROM scores x WHERE x.record_id IN (i.record_id, r.record_id, m.record_id)
) c;

-- One row a season. IMDb rates no seasons: `imdb_rating` is derived, the mean of its episodes weighted by votes, with the sum of the votes.
-- As above, ask for one series.
CREATE VIEW season_scores AS
SELECT n.series_title_id, n.series_title, n.series_imdb_id, n.season, n.title_id,
    coalesce(r.title, m.title) AS title,
    coalesce(r.year, m.year) AS year,
    m.site_id AS metacritic_id, r.site_id AS rottentomatoes_id,
    round(n.rating, 2) AS imdb_rating, n.rating IS NOT NULL AS imdb_rating_derived, n.votes AS imdb_votes, n.episodes, n.episodes_rated,
    coalesce(r.episode_count, m.episode_count) AS episode_count,  -- as a site states it
    c.metascore, c.metascore_reviews, c.metacritic_user_score, c.metacritic_user_ratings,
    c.tomatometer, c.tomatometer_reviews, c.popcornmeter, c.popcornmeter_ratings
FROM (
    SELECT s.title_id AS series_title_id, title_shown(s.title_id) AS series_title, s.imdb_id AS series_imdb_id, y.*
    FROM titles s
    CROSS JOIN LATERAL (
        SELECT x.season, min(x.title_id) AS title_id, sum(x.imdb_rating * x.imdb_votes) / sum(x.imdb_votes) AS rating,
            sum(x.imdb_votes) AS votes, count(x.is_episode) AS episodes, count(x.imdb_votes) AS episodes_rated
        FROM (
            SELECT t.season, t.title_id, NULL::boolean AS is_episode, NULL::numeric AS imdb_rating, NULL::integer AS imdb_votes
            FROM titles t WHERE t.series_title_id = s.title_id AND t.kind::text = 'season'
            UNION ALL
            SELECT e.season, NULL, true, e.imdb_rating, CASE WHEN e.imdb_rating IS NOT NULL THEN e.imdb_votes END
            FROM episode_scores e WHERE e.series_title_id = s.title_id
        ) x
        WHERE x.season IS NOT NULL
        GROUP BY x.season
    ) y
    WHERE s.kind::text IN ('series', 'other')
    UNION ALL
    -- Of a series that no page was read of yet.
    SELECT NULL, (SELECT min(r.series_title) FROM records r WHERE r.title_id = t.title_id), NULL, t.season, t.title_id, NULL, NULL, 0, 0
    FROM titles t WHERE t.series_title_id IS NULL AND t.kind::text = 'season'
) n
LEFT JOIN records r ON r.title_id = n.title_id AND r.site = 'rottentomatoes'
LEFT JOIN records m ON m.title_id = n.title_id AND m.site = 'metacritic'
CROSS JOIN LATERAL (
    SELECT max(x.value) FILTER (WHERE x.kind = 'metascore') AS metascore,
        max(x.count) FILTER (WHERE x.kind = 'metascore') AS metascore_reviews,
        max(x.value) FILTER (WHERE x.kind = 'metacritic_user') AS metacritic_user_score,
        max(x.count) FILTER (WHERE x.kind = 'metacritic_user') AS metacritic_user_ratings,
        max(x.value) FILTER (WHERE x.kind = 'tomatometer') AS tomatometer,
        max(x.count) FILTER (WHERE x.kind = 'tomatometer') AS tomatometer_reviews,
        max(x.value) FILTER (WHERE x.kind = 'popcornmeter') AS popcornmeter,
        max(x.count) FILTER (WHERE x.kind = 'popcornmeter') AS popcornmeter_ratings
    FROM scores x WHERE x.record_id IN (r.record_id, m.record_id)
) c;
