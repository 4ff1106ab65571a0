-- The seasons and episodes of all sites: one row for those of a series with the same numbers.
-- `series` identifies a series whose own page is not stored; `nth` numbers those of one site with
-- the same season and episode number. Ask for one series, by `series_title_id` or
-- `series_imdb_id`: that reads its own episodes only.
CREATE VIEW series_parts AS
SELECT p.series_title_id,
    coalesce(
        (SELECT r.title FROM records r JOIN sites o ON o.site = r.site
         WHERE r.title_id = p.series_title_id ORDER BY o.authority LIMIT 1),
        max(p.series_title)
    ) AS series_title,
    p.series_imdb_id,
    p.series,
    p.kind,
    p.season,
    p.episode,
    p.nth,
    min(p.title_id) AS title_id,
    {own_columns},
    {ids},
    {scores}
FROM (
    SELECT numbered.*,
        row_number() OVER (
            PARTITION BY series_title_id, series_imdb_id, series, numbered.kind, season, episode,
                nth, score_kind
            -- Where a page and IMDb's datasets both have a rating, the one of more votes is newer.
            ORDER BY numbered.site <> k.site, count IS NULL, count DESC, record_id
        ) AS place
    FROM (
        SELECT parts.*,
            dense_rank() OVER (
                PARTITION BY series_title_id, series_imdb_id, series, kind, site, season, episode
                ORDER BY site_id
            ) AS nth
        FROM (
            SELECT s.title_id AS series_title_id,
                s.imdb_id AS series_imdb_id,
                NULL AS series,
                s.title AS series_title,
                'episode' AS kind,
                e.season,
                e.episode,
                'imdb' AS site,
                e.imdb_id AS site_id,
                NULL AS title_id,
                NULL AS record_id,
                e.title,
                e.year,
                NULL AS episode_count,
                'imdb' AS score_kind,
                e.rating AS value,
                e.votes AS count
            FROM imdb_episodes e JOIN titles s ON s.imdb_id = e.series_imdb_id
            UNION ALL
            SELECT t.series_title_id,
                s.imdb_id,
                CASE WHEN t.series_title_id IS NULL THEN r.site || '/' || r.series_id END,
                coalesce(s.title, r.series_title),
                t.kind,
                t.season,
                t.episode,
                r.site,
                r.site_id,
                t.title_id,
                r.record_id,
                r.title,
                r.year,
                r.episode_count,
                c.kind,
                c.value,
                c.count
            FROM titles t
            JOIN records r ON r.title_id = t.title_id
            LEFT JOIN titles s ON s.title_id = t.series_title_id
            LEFT JOIN scores c ON c.record_id = r.record_id
            WHERE t.kind IN ('season', 'episode')
        ) parts
    ) numbered
    LEFT JOIN score_kinds k ON k.kind = numbered.score_kind
) p
GROUP BY p.series_title_id, p.series_imdb_id, p.series, p.kind, p.season, p.episode, p.nth
