-- The most popular titles. Arguments: first, limit.
SELECT title_id, imdb_id, title, year, kind::text, popularity FROM titles
ORDER BY popularity DESC, title_id DESC OFFSET %(first)s LIMIT %(limit)s
