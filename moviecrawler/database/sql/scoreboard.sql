-- The rows of `scrapy scoreboard`, of a kind, or of all but seasons and episodes: IMDb's lists first, in their order, then the other titles by
-- votes. Equal ones are ordered as in the embedded database: by the first site that has the title, its list, and the order of storing.
-- Names in braces: values are the columns of the scores; ids are those of the sites but IMDb; first are the WHENs that find the first site.
SELECT s.title, s.year, s.kind, {values}, s.imdb_votes, s.imdb_id, {ids}, s.tmdb_id, s.matched_by
FROM scoreboard s
JOIN records f ON f.title_id = s.title_id AND f.site = CASE {first} END
CROSS JOIN LATERAL (SELECT s.imdb_list_name IS NOT NULL AND s.imdb_list_rank IS NOT NULL AS listed) l
WHERE %(kind)s IS NULL OR s.kind = %(kind)s::title_kind
ORDER BY
    CASE WHEN l.listed THEN s.imdb_list_name END COLLATE "C" NULLS LAST,
    CASE WHEN l.listed THEN s.imdb_list_rank END NULLS LAST,
    s.imdb_votes DESC NULLS LAST,
    CASE WHEN NOT l.listed THEN s.best_list_rank END NULLS LAST,
    f.site, f.list_name COLLATE "C" NULLS LAST, f.list_rank NULLS LAST, f.record_id
LIMIT %(limit)s
