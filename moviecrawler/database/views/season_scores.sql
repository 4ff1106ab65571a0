-- One row per season. A site that does not rate seasons has the mean of the season's episodes,
-- weighted by votes, with the sum of the votes; the column that ends in _derived says so.
-- `episode_count` is what a site states.
CREATE VIEW season_scores AS
SELECT min(series_title) AS series_title,
    season,
    {own_columns},
    {scores},
    count(*) FILTER (WHERE kind = 'episode') AS episodes,
    {episode_count},
    {ids},
    series_imdb_id,
    min(title_id) FILTER (WHERE kind = 'season') AS title_id,
    series_title_id
FROM series_parts
WHERE season IS NOT NULL
GROUP BY series_title_id, series_imdb_id, series, season
