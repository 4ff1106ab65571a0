-- The most popular titles, those after one. popularity, title_id, limit.
SELECT title_id, imdb_id, title, year, kind::text, popularity FROM titles
WHERE (popularity, title_id) < (%(popularity)s::real, %(title_id)s)
ORDER BY popularity DESC, title_id DESC LIMIT %(limit)s
