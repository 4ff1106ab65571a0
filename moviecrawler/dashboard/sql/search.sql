-- Titles that have the words of a query, or else the most popular ones. One row is a title with its
-- scores by kind, and with how many titles there are.
-- Parameters:
--   query  tsquery; null: any title
--   text   what was searched for; titles with exactly this text come first
--   kind   null: any
--   site   null: also titles without a record of it
--   sort   a kind of scores; null: by popularity
--   most   matches that are ranked
--   first  titles before these
--   limit  titles
WITH exact AS (
    SELECT t.title_id
    FROM titles t
    WHERE lower(t.title) = lower(%(text)s)
        AND t.kind IS NOT DISTINCT FROM coalesce(%(kind)s, t.kind)
    LIMIT %(most)s
), with_words AS (
    SELECT t.title_id
    FROM titles t
    WHERE title_words(t.title, t.original_title) @@ to_tsquery('pg_catalog.simple', %(query)s)
        AND t.kind IS NOT DISTINCT FROM coalesce(%(kind)s, t.kind)
        AND (%(site)s IS NULL OR EXISTS (
            SELECT FROM records r WHERE r.title_id = t.title_id AND r.site = %(site)s))
    LIMIT %(most)s
), popular AS (
    SELECT t.title_id, t.title, t.original_title
    FROM titles t
    WHERE t.kind IS NOT DISTINCT FROM coalesce(%(kind)s, t.kind)
        AND (%(site)s IS NULL OR EXISTS (
            SELECT FROM records r WHERE r.title_id = t.title_id AND r.site = %(site)s))
    ORDER BY t.popularity DESC, t.title_id DESC
    LIMIT %(most)s
), matches AS (
    SELECT title_id FROM exact
    UNION
    SELECT title_id FROM with_words
    UNION
    SELECT p.title_id
    FROM popular p
    WHERE %(query)s IS NULL
        OR title_words(p.title, p.original_title) @@ to_tsquery('pg_catalog.simple', %(query)s)
), ranked AS (
    SELECT t.title_id, t.imdb_id, t.title, t.year, t.kind, t.popularity,
        count(*) OVER () AS matches,
        row_number() OVER (
            ORDER BY
                CASE WHEN %(sort)s IS NOT NULL THEN (
                    SELECT s.value FROM title_scores s
                    WHERE s.title_id = t.title_id AND s.kind = %(sort)s
                ) END DESC NULLS LAST,
                lower(t.title) = lower(%(text)s) DESC,
                t.popularity DESC,
                t.title_id DESC
        ) AS place
    FROM matches m
    JOIN titles t ON t.title_id = m.title_id
    WHERE %(site)s IS NULL OR EXISTS (
        SELECT FROM records r WHERE r.title_id = t.title_id AND r.site = %(site)s)
)
SELECT f.*, (
    SELECT jsonb_object_agg(s.kind, s.value) FROM title_scores s WHERE s.title_id = f.title_id
) AS scores
FROM ranked f
WHERE f.place > %(first)s AND f.place <= %(first)s + %(limit)s
ORDER BY f.place
