-- The rows of `scrapy scoreboard --kind season` or `episode`, by votes. Names in braces: view is the kind's; name is the title of a row
-- without one; episode and imdb_id are the view's columns, or NULL; values and ids are as in scoreboard.sql.
SELECT coalesce(s.title, {name}) AS title, s.year, %(kind)s AS kind, {values}, s.imdb_votes, {imdb_id} AS imdb_id, {ids}, NULL AS tmdb_id,
    coalesce(t.matched_by, '{{}}') AS matched_by, s.series_title, s.series_imdb_id, s.season, {episode} AS episode
FROM {view} s LEFT JOIN titles t USING (title_id)
ORDER BY s.imdb_votes DESC NULLS LAST, s.series_title COLLATE "C" NULLS LAST, s.season NULLS LAST, {episode} NULLS LAST,
    {imdb_id}::text COLLATE "C" NULLS LAST, s.rottentomatoes_id COLLATE "C" NULLS LAST, s.metacritic_id COLLATE "C" NULLS LAST
LIMIT %(limit)s
