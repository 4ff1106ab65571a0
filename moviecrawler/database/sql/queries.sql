-- The best films of which at least four scores are known, critics and users counting the same
SELECT title, year, overall FROM scoreboard WHERE kind = 'movie' AND scores_known > 3
ORDER BY overall DESC LIMIT 20;
-- A title by its IMDb id
SELECT title, imdb_rating, metascore, tomatometer, popcornmeter FROM scoreboard
WHERE imdb_id = 'tt0111161';
-- Where users and critics differ most
SELECT title, round(users_mean - critics_mean, 1) AS gap FROM scoreboard
WHERE abs(users_mean - critics_mean) > 20 ORDER BY 2;
-- The best of each year of which at least four scores are known
SELECT year, title, overall FROM scoreboard b WHERE scores_known > 3
AND overall = (SELECT max(overall) FROM scoreboard WHERE year = b.year AND scores_known > 3);
-- Titles that IMDb alone has
SELECT title, year FROM scoreboard b
WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.title_id = b.title_id AND r.site <> 'imdb')
ORDER BY imdb_votes DESC;
-- The seasons of a series
SELECT season, metascore, tomatometer, imdb_rating FROM season_scores
WHERE series_title = 'Salt Harbour';
-- What changed since a day
SELECT site, title FROM movies WHERE updated_at >= '2026-03-01' ORDER BY updated_at;
-- How a score went
SELECT since, value FROM score_history h JOIN records USING (record_id)
WHERE site_id = 'tt0111161' AND h.kind = 'imdb';
-- Everything that somebody directed
SELECT title, year FROM movies JOIN credits USING (record_id)
WHERE name = 'Odile Farrow' AND role = 'director';
-- Genres by their mean rating
SELECT g.value, round(avg(imdb_rating * 10)) / 10 FROM movies, json_each(genres) g
GROUP BY 1 ORDER BY 2 DESC;
