-- Pages that may be a title's, the likeliest first. limit.
SELECT m.title_id, t.imdb_id, t.title, t.year, m.site::text, m.site_id, m.score, m.reasons, m.decided_at
FROM title_matches m JOIN titles t USING (title_id)
WHERE m.decision = 'review'
ORDER BY m.score DESC, m.title_id, m.site, m.site_id
LIMIT %(limit)s
