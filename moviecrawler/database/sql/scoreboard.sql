-- The rows of `scrapy scoreboard`, of a kind, or of all but seasons: IMDb's lists first, in their order, then what most people voted on. What is equal in
-- all that stands in the order of catalogue.scoreboard: by the first site that has it, its list, and first storing.
SELECT s.title, s.year, s.kind, s.imdb_rating::float, s.imdb_votes, s.metascore::float, s.metacritic_user_score::float,
    s.tomatometer::float, s.popcornmeter::float, s.imdb_id, s.metacritic_id, s.rottentomatoes_id, s.tmdb_id,
    s.matched_by
FROM scoreboard s
JOIN records f ON f.title_id = s.title_id AND f.site = CASE
    WHEN s.imdb_fetched_at IS NOT NULL THEN 'imdb'::site
    WHEN s.metacritic_fetched_at IS NOT NULL THEN 'metacritic'::site
    ELSE 'rottentomatoes'::site END
CROSS JOIN LATERAL (SELECT s.imdb_list_name IS NOT NULL AND s.imdb_list_rank IS NOT NULL AS listed) l
WHERE CASE WHEN %(kind)s IS NULL THEN s.kind <> 'season' ELSE s.kind = %(kind)s::title_kind END
ORDER BY
    CASE WHEN l.listed THEN s.imdb_list_name END COLLATE "C" NULLS LAST,
    CASE WHEN l.listed THEN s.imdb_list_rank END NULLS LAST,
    s.imdb_votes DESC NULLS LAST,
    CASE WHEN NOT l.listed THEN s.best_list_rank END NULLS LAST,
    f.site, f.list_name COLLATE "C" NULLS LAST, f.list_rank NULLS LAST, f.record_id
LIMIT %(limit)s
