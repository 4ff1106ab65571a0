-- The rows of the embedded database's scoreboard. The temporary table `matches` (title_id, site, site_id, matched_by) has the records of each title.
WITH titles AS (
SELECT t.title_id,
    coalesce(i.title, r.title, m.title) AS title, coalesce(i.year, r.year, m.year) AS year, coalesce(i.kind, r.kind, m.kind) AS kind,
    coalesce(i.runtime_minutes, r.runtime_minutes, m.runtime_minutes) AS runtime_minutes,
    coalesce(i.site_id, r.imdb_id, m.imdb_id) AS imdb_id, i.url AS imdb_url, m.site_id AS metacritic_id, m.url AS metacritic_url,
    r.site_id AS rottentomatoes_id, r.url AS rottentomatoes_url,
    i.imdb_rating, i.imdb_votes, round(i.imdb_rating * 10, 1) AS imdb_rating_100,
    -- IMDb shows the Metascore too, but an older one.
    coalesce(m.metascore, i.metascore) AS metascore,
    CASE WHEN m.metascore IS NULL THEN i.metascore_reviews ELSE m.metascore_reviews END AS metascore_reviews,
    coalesce(m.metascore, i.metascore) AS metascore_100,
    m.metacritic_user_score, m.metacritic_user_ratings, round(m.metacritic_user_score * 10, 1) AS metacritic_user_score_100,
    r.tomatometer, r.tomatometer_reviews, r.tomatometer AS tomatometer_100,
    r.popcornmeter, r.popcornmeter_ratings, r.popcornmeter AS popcornmeter_100,
    i.scraped_at AS imdb_fetched_at, m.scraped_at AS metacritic_fetched_at, r.scraped_at AS rottentomatoes_fetched_at,
    i.list_name AS imdb_list_name, i.list_rank AS imdb_list_rank,
    nullif(min(coalesce(i.list_rank, 1e9), coalesce(m.list_rank, 1e9), coalesce(r.list_rank, 1e9)), 1e9) AS best_list_rank,
    t.matched_by, NULL AS tmdb_id
FROM (SELECT DISTINCT title_id, matched_by FROM matches) t
LEFT JOIN matches mi ON mi.title_id = t.title_id AND mi.site = 'imdb' LEFT JOIN movies i ON i.site = 'imdb' AND i.site_id = mi.site_id
LEFT JOIN matches mr ON mr.title_id = t.title_id AND mr.site = 'rottentomatoes'
LEFT JOIN movies r ON r.site = 'rottentomatoes' AND r.site_id = mr.site_id
LEFT JOIN matches mm ON mm.title_id = t.title_id AND mm.site = 'metacritic' LEFT JOIN movies m ON m.site = 'metacritic' AND m.site_id = mm.site_id
), means AS (
SELECT *,
    (coalesce(metascore, 0) + coalesce(tomatometer, 0)) * 1.0
        / nullif((metascore IS NOT NULL) + (tomatometer IS NOT NULL), 0) AS critics,
    (coalesce(imdb_rating_100, 0) + coalesce(metacritic_user_score_100, 0) + coalesce(popcornmeter, 0)) * 1.0
        / nullif((imdb_rating IS NOT NULL) + (metacritic_user_score IS NOT NULL) + (popcornmeter IS NOT NULL), 0) AS users
FROM titles
)
SELECT *, round(critics, 1) AS critics_mean, round(users, 1) AS users_mean, round(coalesce((critics + users) / 2, critics, users), 1) AS overall
FROM means
