-- Changes the episodes of which the datasets say something else now; unchanged rows are not touched.
-- names_whole, ratings_whole: whether each row of title.basics and title.ratings could be read. Otherwise what is not there may be
-- in a damaged row, and what was known stays.
UPDATE imdb_episodes e
SET series_imdb_id = f.series_imdb_id, season = f.season, episode = f.episode,
    title = f.title, year = f.year, rating = f.rating, votes = f.votes
FROM (
    SELECT f.imdb_id, f.series_imdb_id, f.season, f.episode,
        CASE WHEN %(names_whole)s OR f.title IS NOT NULL THEN f.title ELSE o.title END AS title,
        CASE WHEN %(names_whole)s OR f.title IS NOT NULL THEN f.year ELSE o.year END AS year,
        CASE WHEN %(ratings_whole)s OR f.votes IS NOT NULL THEN f.rating ELSE o.rating END AS rating,
        CASE WHEN %(ratings_whole)s OR f.votes IS NOT NULL THEN f.votes ELSE o.votes END AS votes
    FROM found f JOIN imdb_episodes o USING (imdb_id)
) f
WHERE e.imdb_id = f.imdb_id AND (e.series_imdb_id, e.season, e.episode, e.title, e.year, e.rating, e.votes)
    IS DISTINCT FROM (f.series_imdb_id, f.season, f.episode, f.title, f.year, f.rating, f.votes)
