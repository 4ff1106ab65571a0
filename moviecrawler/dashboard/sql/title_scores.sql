-- The scores of a title from each site; those that the scoreboard lacks come last. Arguments: id.
SELECT r.site, r.url, r.scraped_at, r.source, s.kind, s.value::float, s.count,
    (s.value * 100.0 / k.highest)::float AS normalised, s.average::float, s.liked, s.neutral,
    s.disliked, s.certified
FROM scores s JOIN records r USING (record_id) JOIN score_kinds k ON k.kind = s.kind
WHERE r.title_id = %(id)s
ORDER BY k.shown IS NULL, s.kind, r.site
