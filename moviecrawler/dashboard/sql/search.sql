-- Titles that have the words of a query: those of the exact text first, then the most popular ones.
-- Arguments: query, text, most (matches that are ranked), popular (most popular titles that are
-- searched), first, limit.
WITH found AS (
    (SELECT t.title_id FROM titles t WHERE lower(t.title) = lower(%(text)s) LIMIT %(most)s)
    UNION
    (SELECT t.title_id
     FROM titles t
     WHERE title_words(t.title, t.original_title) @@ to_tsquery('pg_catalog.simple', %(query)s)
     LIMIT %(most)s)
    UNION
    (SELECT p.title_id
     FROM (SELECT title_id, title, original_title
           FROM titles
           ORDER BY popularity DESC, title_id DESC
           LIMIT %(popular)s) p
     WHERE title_words(p.title, p.original_title) @@ to_tsquery('pg_catalog.simple', %(query)s))
)
SELECT t.title_id, t.imdb_id, t.title, t.year, t.kind, t.popularity
FROM found JOIN titles t USING (title_id)
ORDER BY lower(t.title) = lower(%(text)s) DESC, t.popularity DESC, t.title_id DESC
OFFSET %(first)s LIMIT %(limit)s
