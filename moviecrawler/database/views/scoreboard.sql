-- One row per title, but for seasons and episodes, which have views of their own. Null: the site
-- has no such value. Where sites differ on the title itself, their authority counts. Columns that
-- end in _100 are scores on a scale of 0 to 100.
CREATE VIEW scoreboard AS
SELECT title, year,
    {score_columns},
    round(critics_mean, 1) AS critics_mean,
    round(users_mean, 1) AS users_mean,
    -- Critics and users count the same, however many scores each has. Null unless both are known:
    -- the mean of one side can't be compared with that of both.
    round((critics_mean + users_mean) / 2, 1) AS overall,
    scores_known, kind, runtime_minutes,
    {count_columns},
    {scaled_columns},
    {id_columns},
    -- Of a series at themoviedb.org/tv/<id>, of everything else at themoviedb.org/movie/<id>.
    CASE WHEN kind = 'series' THEN tmdb_series_id ELSE tmdb_id END AS tmdb_id,
    {list_columns},
    best_list_rank,
    {url_columns},
    {time_columns},
    matched_by, title_id
FROM (
    SELECT t.title_id,
        {own_columns},
        {ids},
        {scores},
        {critics_mean} AS critics_mean,
        {users_mean} AS users_mean,
        {scores_known} AS scores_known,
        {times},
        {lists},
        (SELECT min(l.rank)
         FROM records r JOIN list_ranks l ON l.site = r.site AND l.site_id = r.site_id
         WHERE r.title_id = t.title_id) AS best_list_rank,
        t.matched_by,
        t.tmdb_id,
        t.tmdb_series_id
    FROM titles t
    {record_joins}
    {score_joins}
) board
WHERE kind NOT IN ('season', 'episode')
