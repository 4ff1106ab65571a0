-- Pages that may be a title's, the likeliest first, those after one: its score, title_id, site, site_id. limit.
SELECT m.title_id, t.imdb_id, t.title, t.year, m.site::text, m.site_id, m.score, m.reasons, m.decided_at
FROM (
    SELECT * FROM title_matches
    WHERE decision = 'review' AND score <= %(score)s::real
        AND (score < %(score)s::real OR (title_id, site, site_id) > (%(title_id)s, %(site)s::site, %(site_id)s))
    ORDER BY score DESC, title_id, site, site_id
    LIMIT %(limit)s
) m JOIN titles t USING (title_id)
ORDER BY m.score DESC, m.title_id, m.site, m.site_id
