-- One row per episode.
CREATE VIEW episode_scores AS
SELECT series_title, season, episode, title, year,
    {score_names},
    {id_names},
    series_imdb_id, title_id, series_title_id
FROM series_parts
WHERE kind = 'episode'
