-- additive
-- How sure a score is, where to watch a title, what it is like, and what its site recommends beside it.
--
-- Finer scores (`finer_scores`) stand apart from the five of the scoreboard: versions that do not know them go on with `scores`.

ALTER TABLE records
    ADD COLUMN poster_width  integer CHECK (poster_width > 0),  -- pixels
    ADD COLUMN poster_height integer CHECK (poster_height > 0),
    ADD COLUMN keywords      text[] NOT NULL DEFAULT '{}',
    ADD COLUMN interests     text[] NOT NULL DEFAULT '{}',  -- IMDb's finer genres
    ADD COLUMN taglines      text[] NOT NULL DEFAULT '{}',
    ADD COLUMN awards        jsonb NOT NULL DEFAULT '[]',  -- array of {event, wins, nominations}
    ADD COLUMN related       jsonb NOT NULL DEFAULT '[]',  -- array of {relation, site_id, title, connection}, in page order
    ADD COLUMN consensus     text,  -- Rotten Tomatoes' critics'
    ADD COLUMN external_ids  jsonb;  -- by whose they are; null: silent of all of these columns, as what was written before them
-- Keywords as they are compared: sites write them with spaces or with hyphens.
CREATE FUNCTION plain_keywords(keywords text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ARRAY(SELECT lower(replace(k, '-', ' ')) FROM unnest(keywords) k) $$;
-- As for match_keys; empty ones need no place in an index.
CREATE INDEX records_keywords ON records USING gin (plain_keywords(keywords)) WITH (fastupdate = off) WHERE keywords <> '{}';
CREATE INDEX records_interests ON records USING gin (interests) WITH (fastupdate = off) WHERE interests <> '{}';
CREATE INDEX records_related ON records USING gin (jsonb_path_query_array(related, '$[*].site_id') jsonb_path_ops)
    WITH (fastupdate = off) WHERE related <> '[]';

ALTER TABLE scores
    ADD COLUMN average   numeric CHECK (average >= 0),  -- scale: 10 for the Tomatometer, 5 for the Popcornmeter, 100 for the Metascore
    ADD COLUMN reviews   integer CHECK (reviews >= 0),  -- written ones of users, where `count` is of ratings
    ADD COLUMN liked     integer CHECK (liked >= 0),
    ADD COLUMN neutral   integer CHECK (neutral >= 0),
    ADD COLUMN disliked  integer CHECK (disliked >= 0),
    ADD COLUMN certified boolean,
    ADD COLUMN sentiment text,
    ADD COLUMN histogram integer[];  -- votes for 1 to 10
ALTER TABLE score_history ADD COLUMN average numeric;

CREATE TYPE finer_score_kind AS ENUM ('tomatometer_top', 'popcornmeter_all', 'popcornmeter_verified');

CREATE TABLE finer_scores (  -- columns as in scores
    record_id bigint NOT NULL REFERENCES records ON DELETE CASCADE,
    kind      finer_score_kind NOT NULL,
    value     numeric NOT NULL CHECK (value BETWEEN 0 AND 100),
    count     integer CHECK (count > 0),
    average   numeric CHECK (average >= 0),
    reviews   integer CHECK (reviews >= 0),
    liked     integer CHECK (liked >= 0),
    neutral   integer CHECK (neutral >= 0),
    disliked  integer CHECK (disliked >= 0),
    certified boolean,
    sentiment text,
    histogram integer[],
    PRIMARY KEY (record_id, kind)
);

CREATE TABLE finer_score_history (  -- as score_history
    record_id bigint NOT NULL REFERENCES records ON DELETE CASCADE,
    kind      finer_score_kind NOT NULL,
    since     timestamptz NOT NULL,
    value     numeric,
    count     integer,
    average   numeric,
    PRIMARY KEY (record_id, kind, since)
);

CREATE TYPE offer_kind AS ENUM ('free', 'ads', 'subscription', 'rent', 'buy', 'cinema');

CREATE TABLE offers (  -- where a title can be watched, and could be
    record_id bigint NOT NULL REFERENCES records ON DELETE CASCADE,
    provider  text NOT NULL CHECK (provider <> ''),
    kind      offer_kind NOT NULL,
    country   text,
    quality   text,
    price     numeric CHECK (price > 0),  -- of now, or the last
    currency  text,
    url       text,
    source    text,  -- whose data it is and who must be named, such as JustWatch; null: the site's own
    since     timestamptz NOT NULL,  -- the first reading that found it
    ended     timestamptz  -- the first reading that no longer did; null: it is offered now
);
CREATE UNIQUE INDEX offers_now ON offers (record_id, provider, kind, coalesce(country, ''), coalesce(quality, ''))
    WHERE ended IS NULL;
CREATE INDEX offers_record ON offers (record_id);
CREATE INDEX offers_provider ON offers (provider, record_id) WHERE ended IS NULL;

-- As before, with what is new, in the form of catalogue.stored: `finer_scores` stands beside `scores`, and what is silent of all that is
-- new is without `external_ids`.
CREATE OR REPLACE VIEW items AS
SELECT r.record_id, r.title_id, r.placed_by_hand, r.site, r.site_id,
    to_jsonb(r) - '{record_id,title_id,placed_by_hand,match_keys}'::text[]
        - CASE WHEN r.external_ids IS NULL THEN 'external_ids' ELSE '' END
    || jsonb_build_object(
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

-- Every score of every site, the finer ones too, with all that is known of it.
CREATE VIEW all_scores AS
SELECT r.title_id, s.*, r.site, r.scraped_at
FROM records r JOIN (
    SELECT record_id, kind::text AS kind, value, normalised, count, average, reviews, liked, neutral, disliked, certified,
        sentiment, histogram
    FROM scores
    UNION ALL
    SELECT record_id, kind::text, value, value, count, average, reviews, liked, neutral, disliked, certified, sentiment, histogram
    FROM finer_scores
) s USING (record_id);

CREATE VIEW all_score_history AS
SELECT r.title_id, h.*, r.site
FROM records r JOIN (
    SELECT record_id, kind::text AS kind, since, value, count, average FROM score_history
    UNION ALL
    SELECT record_id, kind::text, since, value, count, average FROM finer_score_history
) h USING (record_id);

-- What each provider offers now.
CREATE VIEW titles_by_provider AS
SELECT o.provider, o.country, o.kind AS offer, t.title_id, coalesce(t.title, r.title) AS title, coalesce(t.year, r.year) AS year,
    o.quality, o.price, o.currency, o.url, o.since, o.source, r.site
FROM offers o JOIN records r USING (record_id) JOIN titles t USING (title_id)
WHERE o.ended IS NULL;

-- The titles that have most in common with one: keywords, interests, people, and what sites recommend. A trait counts the logarithm
-- of how rare it is. Titles are found by traits that fewer than 1,000 records have; the others only raise those.
--
--     SELECT * FROM similar_titles(42);
--
-- The planner, which can't know how few records have a trait, would now and then read the whole table for each: it is told not to.
--
-- own_recommendations: whether what this title's own pages recommend counts. Without it, the ranking can be compared with it.
CREATE FUNCTION similar_titles(id bigint, most integer DEFAULT 50, own_recommendations boolean DEFAULT true)
RETURNS TABLE (title_id bigint, title text, year integer, kind title_kind, points real, shared text[])
LANGUAGE sql STABLE ROWS 50 SET enable_seqscan = off AS $$
    WITH own AS MATERIALIZED (
        SELECT r.record_id, r.site, r.site_id, plain_keywords(r.keywords) AS keywords, r.interests, r.related
        FROM records r WHERE r.title_id = id
    ), recommending AS MATERIALIZED (
        SELECT r.record_id, r.site, r.title, r.related
        FROM own CROSS JOIN LATERAL (
            SELECT * FROM records x
            WHERE x.related <> '[]' AND jsonb_path_query_array(x.related, '$[*].site_id') @> to_jsonb(own.site_id)
                AND x.site = own.site
            LIMIT 200
        ) r
    ), recommended AS MATERIALIZED (
        SELECT own.site, e.site_id, e.title, r.record_id
        FROM own CROSS JOIN LATERAL jsonb_to_recordset(own.related) AS e (site_id text, title text)
        LEFT JOIN records r ON r.site = own.site AND r.site_id = e.site_id
        WHERE own_recommendations
    ), traits (what, name, factor, found) AS MATERIALIZED (
        SELECT 'keyword', k.name, 1.0,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.keywords <> '{}' AND plain_keywords(r.keywords) @> ARRAY[k.name] LIMIT 1000)
        FROM (SELECT DISTINCT unnest(keywords) FROM own) k (name)
        UNION ALL
        SELECT 'interest', k.name, 0.7,
            ARRAY(SELECT r.record_id FROM records r WHERE r.interests <> '{}' AND r.interests @> ARRAY[k.name] LIMIT 1000)
        FROM (SELECT DISTINCT unnest(interests) FROM own) k (name)
        UNION ALL
        SELECT 'person', p.name, CASE WHEN p.role = 'cast' THEN 0.5 ELSE 0.8 END,
            ARRAY(SELECT c.record_id FROM credits c WHERE c.person_id = p.person_id LIMIT 1000)
        FROM (
            SELECT DISTINCT ON (c.person_id) c.person_id, c.name, c.role FROM own JOIN credits c USING (record_id)
            WHERE c.position <= 10 ORDER BY c.person_id, c.role
        ) p
        UNION ALL
        SELECT 'recommended beside it', x.title, 1.0,
            ARRAY(SELECT r.record_id FROM jsonb_to_recordset(x.related) AS e (site_id text)
                  JOIN records r ON r.site = x.site AND r.site_id = e.site_id)
        FROM recommending x
        UNION ALL
        SELECT 'recommends it', x.title, 2.0, ARRAY[x.record_id] FROM recommending x
        UNION ALL
        SELECT 'recommended', e.title, 2.0, ARRAY[e.record_id] FROM recommended e WHERE e.record_id IS NOT NULL
        UNION ALL
        SELECT 'recommends the same', e.title, 1.0,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.related <> '[]' AND jsonb_path_query_array(r.related, '$[*].site_id') @> to_jsonb(e.site_id)
                      AND r.site = e.site LIMIT 1000)
        FROM recommended e
    ), weighted AS MATERIALIZED (
        SELECT w.what, w.name, w.found, cardinality(w.found) >= 1000 AS is_common,
            w.factor * ln(1 + n.records / cardinality(w.found)) AS weight
        FROM traits w
        CROSS JOIN (SELECT greatest(reltuples, 1000)::numeric FROM pg_class WHERE oid = 'records'::regclass) n (records)
        WHERE cardinality(w.found) > 0
    ), found AS MATERIALIZED (
        SELECT w.what, w.name, w.weight, r.record_id FROM weighted w CROSS JOIN LATERAL unnest(w.found) AS r (record_id)
        WHERE NOT w.is_common
    ), candidates AS MATERIALIZED (
        SELECT r.record_id, plain_keywords(r.keywords) AS keywords, r.interests
        FROM (SELECT DISTINCT record_id FROM found) f JOIN records r USING (record_id)
        WHERE EXISTS (SELECT FROM weighted WHERE is_common)
    ), shared AS (
        SELECT r.title_id, f.what, f.name, max(f.weight) AS weight  -- once, on however many sites it is shared
        FROM (
            SELECT * FROM found
            UNION ALL
            SELECT w.what, w.name, w.weight, c.record_id
            FROM weighted w JOIN candidates c
                ON w.name = ANY (CASE w.what WHEN 'keyword' THEN c.keywords WHEN 'interest' THEN c.interests END)
            WHERE w.is_common
        ) f JOIN records r USING (record_id)
        WHERE r.title_id <> id
        GROUP BY r.title_id, f.what, f.name
    ), best AS (
        SELECT s.title_id, sum(s.weight) AS points,
            array_agg(s.what || coalesce(': ' || s.name, '') ORDER BY s.weight DESC, s.what, s.name) AS shared
        FROM shared s GROUP BY s.title_id ORDER BY points DESC, s.title_id LIMIT most
    )
    SELECT b.title_id, t.title, t.year, t.kind, b.points::real, b.shared
    FROM best b JOIN titles t ON t.title_id = b.title_id
    ORDER BY b.points DESC, b.title_id
$$;

-- As before; the histories of finer scores and offers go along.
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
    DELETE FROM records WHERE record_id = old.record_id;
    UPDATE records SET title_id = old.title_id, placed_by_hand = old.placed_by_hand WHERE record_id = new.record_id;
    PERFORM settle_titles(ARRAY[old.title_id, new.title_id]);
    RETURN true;
END
$$;
