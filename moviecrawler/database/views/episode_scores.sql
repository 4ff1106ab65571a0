-- One row per episode.
CREATE VIEW episode_scores AS
SELECT series_title_id, series_title, series_imdb_id, season, episode, title_id, title, year,
    {id_names},
    {score_names}
FROM series_parts
WHERE kind = 'episode'
