-- What analysts ask of the scoreboard, and the titles like another.

-- The five decades whose movies run longest.
CREATE VIEW longest_decades AS
SELECT year / 10 * 10 AS decade,
    round(avg(runtime_minutes), 1) AS mean_runtime_minutes,
    count(*) AS movies
FROM scoreboard
WHERE kind = 'movie' AND year IS NOT NULL AND runtime_minutes IS NOT NULL
GROUP BY decade
ORDER BY mean_runtime_minutes DESC, decade
LIMIT 5;

-- How far the ratings of a year's movies lie apart; null for a year with a single one.
CREATE VIEW rating_spread_by_year AS
SELECT year,
    round(stddev_samp(imdb_rating), 2) AS standard_deviation,
    round(avg(imdb_rating), 2) AS mean_rating,
    count(*) AS movies
FROM scoreboard
WHERE kind = 'movie' AND year IS NOT NULL AND imdb_rating IS NOT NULL
GROUP BY year
ORDER BY year;

-- Titles on which IMDb's users and Metacritic's critics differ by more than 20 % of the scale.
CREATE VIEW users_against_critics AS
SELECT title_id, title, year, imdb_rating_100, metascore_100,
    imdb_rating_100 - metascore_100 AS difference
FROM scoreboard
WHERE abs(imdb_rating_100 - metascore_100) > 20
ORDER BY abs(imdb_rating_100 - metascore_100) DESC, title_id;

-- Each movie's rank by rating among those of its year; equal ratings by the number of votes.
CREATE VIEW rank_within_year AS
SELECT year,
    rank() OVER (PARTITION BY year ORDER BY imdb_rating DESC, imdb_votes DESC NULLS LAST) AS rank,
    title_id, title, imdb_rating, imdb_votes
FROM scoreboard
WHERE kind = 'movie' AND year IS NOT NULL AND imdb_rating IS NOT NULL;

-- Each title with the first five of its cast in billing order, as the first site that names any
-- gives them.
CREATE VIEW main_actors AS
SELECT b.title_id, b.title, b.year, a.actors
FROM scoreboard b
JOIN LATERAL (
    SELECT array_agg(c.name ORDER BY c.position) AS actors
    FROM records r JOIN credits c USING (record_id)
    WHERE r.title_id = b.title_id AND c.role = 'cast' AND c.position <= 5
    GROUP BY r.record_id
    ORDER BY array_position('{imdb,rottentomatoes,metacritic}'::site[], r.site)
    LIMIT 1
) a ON true;

-- The titles that share most with one: keywords, interests, people, and recommendations of sites. A
-- trait counts by the logarithm of how rare it is; one that a thousand records have counts nothing.
--
--     SELECT * FROM similar_titles(42);
--
-- enable_seqscan is off because the planner can't know how few records have a trait, and would now
-- and then read the whole table for each.
CREATE FUNCTION similar_titles(id bigint, most integer DEFAULT 50)
RETURNS TABLE (
    title_id bigint, title text, year integer, kind title_kind, points real, shared text[])
LANGUAGE sql STABLE ROWS 50 SET enable_seqscan = off AS $$
    WITH own AS MATERIALIZED (
        SELECT r.record_id, r.site, r.site_id, plain_keywords(r.keywords) AS keywords,
            r.interests, r.related
        FROM records r WHERE r.title_id = id
    ), traits (what, name, factor, found) AS MATERIALIZED (
        SELECT 'keyword', k.name, 1.0,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.keywords <> '{}' AND plain_keywords(r.keywords) @> ARRAY[k.name]
                  LIMIT 1000)
        FROM (SELECT DISTINCT unnest(keywords) FROM own) k (name)
        UNION ALL
        SELECT 'interest', k.name, 0.7,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.interests <> '{}' AND r.interests @> ARRAY[k.name]
                  LIMIT 1000)
        FROM (SELECT DISTINCT unnest(interests) FROM own) k (name)
        UNION ALL
        SELECT 'person', p.name, CASE WHEN p.role = 'cast' THEN 0.5 ELSE 0.8 END,
            ARRAY(SELECT c.record_id FROM credits c WHERE c.person_id = p.person_id LIMIT 1000)
        FROM (
            SELECT DISTINCT ON (c.person_id) c.person_id, c.name, c.role
            FROM own JOIN credits c USING (record_id)
            WHERE c.position <= 10 ORDER BY c.person_id, c.role
        ) p
        UNION ALL
        SELECT 'recommends it', NULL, 2.0,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.related <> '[]'
                      AND jsonb_path_query_array(r.related, '$[*].site_id') @> to_jsonb(own.site_id)
                      AND r.site = own.site
                  LIMIT 200)
        FROM own
        UNION ALL
        SELECT 'recommended', NULL, 2.0,
            ARRAY(SELECT r.record_id FROM jsonb_to_recordset(own.related) AS e (site_id text)
                  JOIN records r ON r.site = own.site AND r.site_id = e.site_id)
        FROM own
    ), shared AS (
        SELECT r.title_id, t.what, t.name,
            -- Once, if several sites share it.
            max(t.factor * ln(1 + n.records / cardinality(t.found))) AS weight
        FROM traits t
        CROSS JOIN LATERAL unnest(t.found) AS f (record_id)
        JOIN records r USING (record_id)
        CROSS JOIN (
            SELECT greatest(reltuples, 1000)::numeric FROM pg_class WHERE oid = 'records'::regclass
        ) n (records)
        WHERE cardinality(t.found) < 1000 AND r.title_id <> id
        GROUP BY r.title_id, t.what, t.name
    ), best AS (
        SELECT s.title_id, sum(s.weight) AS points,
            array_agg(
                s.what || coalesce(': ' || s.name, '') ORDER BY s.weight DESC, s.what, s.name
            ) AS shared
        FROM shared s GROUP BY s.title_id ORDER BY points DESC, s.title_id LIMIT most
    )
    SELECT b.title_id, t.title, t.year, t.kind, b.points::real, b.shared
    FROM best b JOIN titles t ON t.title_id = b.title_id
    ORDER BY b.points DESC, b.title_id
$$;
