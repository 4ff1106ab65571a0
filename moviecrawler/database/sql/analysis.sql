-- The titles like another.

-- The titles that share most with one: keywords, interests, people, and recommendations of sites. A
-- trait counts by the logarithm of how rare it is; one that a thousand records have counts nothing.
--
--     SELECT * FROM similar_titles(42);
--
-- enable_seqscan is off because the planner can't know how few records have a trait, and would now
-- and then read the whole table for each.
CREATE OR REPLACE FUNCTION similar_titles(id bigint, most integer DEFAULT 50)
RETURNS TABLE (
    title_id bigint, title text, year integer, kind text, points real, shared text[])
LANGUAGE sql STABLE ROWS 50 SET enable_seqscan = off AS $$
    WITH own AS MATERIALIZED (
        SELECT r.record_id, r.site, r.site_id, plain_keywords(r.keywords) AS keywords,
            r.interests
        FROM records r WHERE r.title_id = id
    ), traits (what, name, factor, found) AS MATERIALIZED (
        SELECT 'keyword', k.name, 1.0,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.keywords <> '[]' AND plain_keywords(r.keywords) @> ARRAY[k.name]
                  LIMIT 1000)
        FROM (SELECT DISTINCT unnest(keywords) FROM own) k (name)
        UNION ALL
        SELECT 'interest', k.name, 0.7,
            ARRAY(SELECT r.record_id FROM records r
                  WHERE r.interests <> '[]' AND r.interests @> to_jsonb(k.name)
                  LIMIT 1000)
        FROM (SELECT DISTINCT jsonb_array_elements_text(interests) FROM own) k (name)
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
            ARRAY(SELECT r.record_id FROM related e JOIN records r USING (record_id)
                  WHERE e.related_id = own.site_id AND r.site = own.site
                  LIMIT 200)
        FROM own
        UNION ALL
        SELECT 'recommended', NULL, 2.0,
            ARRAY(SELECT r.record_id FROM related e
                  JOIN records r ON r.site = own.site AND r.site_id = e.related_id
                  WHERE e.record_id = own.record_id)
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
