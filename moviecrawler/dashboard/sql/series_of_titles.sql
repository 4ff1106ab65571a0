-- The series of seasons and episodes, and the season of an episode. Arguments: ids.
SELECT t.title_id, t.series_title_id, title_shown(t.series_title_id) AS series_title, t.season,
    t.episode,
    CASE WHEN t.kind = 'episode' THEN
        (SELECT s.title_id FROM titles s
         WHERE s.series_title_id = t.series_title_id
             AND s.season = t.season
             AND s.episode IS NULL
             AND s.kind = 'season'
         ORDER BY s.title_id LIMIT 1) END AS season_title_id
FROM titles t WHERE t.title_id = ANY (%(ids)s) AND t.series_title_id IS NOT NULL
