-- What is asked of the tables. Plain views: always as current as the tables themselves.

-- Each record as the item that was scraped, in the JSON form of moviecrawler.items.Movie.
CREATE VIEW items AS
SELECT r.record_id, r.title_id, r.placed_by_hand, r.site, r.site_id,
    to_jsonb(r) - '{record_id,title_id,placed_by_hand,match_keys}'::text[] || jsonb_build_object(
        'genres',
        (SELECT coalesce(jsonb_agg(g.name ORDER BY rg.position), '[]')
         FROM record_genres rg JOIN genres g USING (genre_id) WHERE rg.record_id = r.record_id),
        'credits',
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'name', c.name, 'role', c.role, 'position', c.position, 'person_id', p.site_person_id,
             'character', c.character) ORDER BY c.role, c.position), '[]')
         FROM credits c JOIN people p USING (person_id) WHERE c.record_id = r.record_id),
        'scores',
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'kind', s.kind, 'value', s.value, 'count', s.count) ORDER BY s.kind), '[]')
         FROM scores s WHERE s.record_id = r.record_id),
        'amounts',
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'kind', a.kind, 'value', a.value, 'currency', a.currency) ORDER BY a.kind), '[]')
         FROM amounts a WHERE a.record_id = r.record_id)) AS item
FROM records r;

-- Each score of a title once. IMDb shows the Metascore as well, as it was when IMDb last looked: Metacritic's own goes first.
-- Where sites otherwise give the same score, the one that the scoreboard trusts with titles does.
CREATE VIEW title_scores AS
SELECT DISTINCT ON (r.title_id, s.kind) r.title_id, s.kind, s.value, s.count, s.normalised, r.site, r.scraped_at
FROM records r JOIN scores s USING (record_id)
ORDER BY r.title_id, s.kind, (s.kind = 'metascore' AND r.site <> 'metacritic'), array_position('{imdb,rottentomatoes,metacritic}'::site[], r.site);

-- One row a title. What a site hasn't is null. Where sites differ on the title itself, IMDb goes before Rotten Tomatoes
-- before Metacritic. Columns that end in _100 are the score on a scale of 0 to 100.
CREATE VIEW scoreboard AS
SELECT t.title_id,
    coalesce(i.title, r.title, m.title) AS title,
    coalesce(i.year, r.year, m.year) AS year,
    coalesce(i.kind, r.kind, m.kind) AS kind,
    coalesce(i.runtime_minutes, r.runtime_minutes, m.runtime_minutes) AS runtime_minutes,
    coalesce(i.site_id, r.imdb_id, m.imdb_id) AS imdb_id,
    i.url AS imdb_url,
    m.site_id AS metacritic_id,
    m.url AS metacritic_url,
    r.site_id AS rottentomatoes_id,
    r.url AS rottentomatoes_url,
    s.imdb_rating, s.imdb_votes, s.imdb_rating_100,
    s.metascore, s.metascore_reviews, s.metascore_100,
    s.metacritic_user_score, s.metacritic_user_ratings, s.metacritic_user_score_100,
    s.tomatometer, s.tomatometer_reviews, s.tomatometer_100,
    s.popcornmeter, s.popcornmeter_ratings, s.popcornmeter_100,
    round(s.critics_mean, 1) AS critics_mean,  -- of Metascore and Tomatometer, 0 to 100
    round(s.users_mean, 1) AS users_mean,  -- of IMDb, Metacritic's users and Popcornmeter, 0 to 100
    -- Critics and users count the same, however many scores stand on either side.
    round(coalesce((s.critics_mean + s.users_mean) / 2, s.critics_mean, s.users_mean), 1) AS overall,
    i.scraped_at AS imdb_fetched_at,
    m.scraped_at AS metacritic_fetched_at,
    r.scraped_at AS rottentomatoes_fetched_at,
    i.list_name AS imdb_list_name,
    i.list_rank AS imdb_list_rank,
    least(i.list_rank, m.list_rank, r.list_rank) AS best_list_rank,
    t.matched_by
FROM titles t
LEFT JOIN records i ON i.title_id = t.title_id AND i.site = 'imdb'
LEFT JOIN records r ON r.title_id = t.title_id AND r.site = 'rottentomatoes'
LEFT JOIN records m ON m.title_id = t.title_id AND m.site = 'metacritic'
LEFT JOIN (
    SELECT title_id,
        max(value) FILTER (WHERE kind = 'imdb') AS imdb_rating,
        max(count) FILTER (WHERE kind = 'imdb') AS imdb_votes,
        max(normalised) FILTER (WHERE kind = 'imdb') AS imdb_rating_100,
        max(value) FILTER (WHERE kind = 'metascore') AS metascore,
        max(count) FILTER (WHERE kind = 'metascore') AS metascore_reviews,
        max(normalised) FILTER (WHERE kind = 'metascore') AS metascore_100,
        max(value) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_score,
        max(count) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_ratings,
        max(normalised) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_score_100,
        max(value) FILTER (WHERE kind = 'tomatometer') AS tomatometer,
        max(count) FILTER (WHERE kind = 'tomatometer') AS tomatometer_reviews,
        max(normalised) FILTER (WHERE kind = 'tomatometer') AS tomatometer_100,
        max(value) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter,
        max(count) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter_ratings,
        max(normalised) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter_100,
        avg(normalised) FILTER (WHERE kind IN ('metascore', 'tomatometer')) AS critics_mean,
        avg(normalised) FILTER (WHERE kind NOT IN ('metascore', 'tomatometer')) AS users_mean
    FROM title_scores GROUP BY title_id
) s ON s.title_id = t.title_id
WHERE coalesce(i.record_id, r.record_id, m.record_id) IS NOT NULL;

-- The five decades whose movies run longest.
CREATE VIEW longest_decades AS
SELECT year / 10 * 10 AS decade, round(avg(runtime_minutes), 1) AS mean_runtime_minutes, count(*) AS movies
FROM scoreboard
WHERE kind = 'movie' AND year IS NOT NULL AND runtime_minutes IS NOT NULL
GROUP BY decade
ORDER BY mean_runtime_minutes DESC, decade
LIMIT 5;

-- How far the ratings of a year's movies lie apart; null for a year with a single one.
CREATE VIEW rating_spread_by_year AS
SELECT year, round(stddev_samp(imdb_rating), 2) AS standard_deviation, round(avg(imdb_rating), 2) AS mean_rating,
    count(*) AS movies
FROM scoreboard
WHERE kind = 'movie' AND year IS NOT NULL AND imdb_rating IS NOT NULL
GROUP BY year
ORDER BY year;

-- Titles on which IMDb's users and Metacritic's critics differ by more than 20 % of the scale.
CREATE VIEW users_against_critics AS
SELECT title_id, title, year, imdb_rating_100, metascore_100, imdb_rating_100 - metascore_100 AS difference
FROM scoreboard
WHERE abs(imdb_rating_100 - metascore_100) > 20
ORDER BY abs(imdb_rating_100 - metascore_100) DESC, title_id;

-- Each movie's place by rating among those of its year; equal ratings by the number of votes.
CREATE VIEW rank_within_year AS
SELECT year, rank() OVER (PARTITION BY year ORDER BY imdb_rating DESC, imdb_votes DESC NULLS LAST) AS rank,
    title_id, title, imdb_rating, imdb_votes
FROM scoreboard
WHERE kind = 'movie' AND year IS NOT NULL AND imdb_rating IS NOT NULL;

-- Each title with the first five of its cast in billing order, as the first site that names any gives them.
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
