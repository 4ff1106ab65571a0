-- The rows of `scrapy scoreboard --kind season` or `episode`: what most people voted on first. Of the names in braces: view is that of the kind,
-- name the title of a row without one, and episode and imdb_id its columns, if it has them.
SELECT coalesce(v.title, {name}) AS title, v.year, %(kind)s AS kind, v.imdb_rating::float, v.imdb_votes, v.metascore::float,
    v.metacritic_user_score::float, v.tomatometer::float, v.popcornmeter::float, {imdb_id} AS imdb_id, v.metacritic_id,
    v.rottentomatoes_id, NULL AS tmdb_id, coalesce(t.matched_by, '{{}}') AS matched_by, v.series_title, v.series_imdb_id, v.season,
    {episode} AS episode
FROM {view} v LEFT JOIN titles t USING (title_id)
ORDER BY v.imdb_votes DESC NULLS LAST, v.series_title COLLATE "C" NULLS LAST, v.season NULLS LAST, {episode} NULLS LAST,
    {imdb_id}::text COLLATE "C" NULLS LAST, v.rottentomatoes_id COLLATE "C" NULLS LAST, v.metacritic_id COLLATE "C" NULLS LAST
LIMIT %(limit)s
