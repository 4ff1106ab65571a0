-- The rows of the embedded database's scoreboard. The temporary table `matches` (title_id, site,
-- site_id, matched_by) has the records of each title. The name in braces is what both databases
-- share.
WITH titles AS (
    SELECT DISTINCT title_id, matched_by, NULL AS tmdb_id, NULL AS tmdb_series_id FROM matches
), records AS (
    SELECT title_id, site, site_id, imdb_id, url, title, kind, year, runtime_minutes,
        list_name, list_rank, scraped_at
    FROM matches JOIN movies USING (site, site_id)
), title_scores AS (
    -- Of a kind that several sites show, the one that is least in this order; IMDb's Metascore is
    -- an older one.
    SELECT title_id, kind, value, count, round(value * 100.0 / scale, 1) AS normalised,
        min(
            100 * (kind = 'metascore' AND site <> 'metacritic')
            + instr('imdb rottentomatoes metacritic', site)
        ) AS nth
    FROM matches JOIN scores USING (site, site_id)
    WHERE kind IN ('imdb', 'metascore', 'metacritic_user', 'tomatometer', 'popcornmeter')
    GROUP BY title_id, kind
)
{rows}
