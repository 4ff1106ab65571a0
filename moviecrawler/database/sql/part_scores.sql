-- The views of seasons and episodes in both databases, which have a view `parts` each.

CREATE VIEW episode_scores AS
SELECT series_title_id,
    series_title,
    series_imdb_id,
    season,
    episode,
    title_id,
    title,
    year,
    imdb_id,
    metacritic_id,
    rottentomatoes_id,
    imdb_rating,
    imdb_votes,
    metascore,
    metascore_reviews,
    metacritic_user_score,
    metacritic_user_ratings,
    tomatometer,
    tomatometer_reviews,
    popcornmeter,
    popcornmeter_ratings
FROM parts WHERE kind = 'episode';

-- One row a season. IMDb rates no seasons: `imdb_rating` is derived, the mean of its episodes
-- weighted by votes, with the sum of the votes; `episode_count` is what a site states.
CREATE VIEW season_scores AS
SELECT series_title_id, min(series_title) AS series_title, series_imdb_id, season,
    min(title_id) FILTER (WHERE kind = 'season') AS title_id,
    min(title) FILTER (WHERE kind = 'season') AS title,
    min(year) FILTER (WHERE kind = 'season') AS year,
    min(metacritic_id) FILTER (WHERE kind = 'season') AS metacritic_id,
    min(rottentomatoes_id) FILTER (WHERE kind = 'season') AS rottentomatoes_id,
    round(sum(imdb_rating * imdb_votes) * 1.0 / sum(imdb_votes), 2) AS imdb_rating,
    sum(imdb_votes) IS NOT NULL AS imdb_rating_derived,
    sum(imdb_votes) AS imdb_votes,
    count(*) FILTER (WHERE kind = 'episode') AS episodes,
    count(imdb_votes) AS episodes_rated,
    max(episode_count) FILTER (WHERE kind = 'season') AS episode_count,
    max(metascore) FILTER (WHERE kind = 'season') AS metascore,
    max(metascore_reviews) FILTER (WHERE kind = 'season') AS metascore_reviews,
    max(metacritic_user_score) FILTER (WHERE kind = 'season') AS metacritic_user_score,
    max(metacritic_user_ratings) FILTER (WHERE kind = 'season') AS metacritic_user_ratings,
    max(tomatometer) FILTER (WHERE kind = 'season') AS tomatometer,
    max(tomatometer_reviews) FILTER (WHERE kind = 'season') AS tomatometer_reviews,
    max(popcornmeter) FILTER (WHERE kind = 'season') AS popcornmeter,
    max(popcornmeter_ratings) FILTER (WHERE kind = 'season') AS popcornmeter_ratings
FROM parts
WHERE season IS NOT NULL
GROUP BY series_title_id, series_imdb_id, series, season;
