-- The scores of a title from each site; those that the scoreboard lacks come last. Arguments: id.
SELECT r.site::text, r.url, r.scraped_at, r.source::text, s.kind::text, s.value::float, s.count,
    s.normalised::float, s.average::float, s.liked, s.neutral, s.disliked, s.certified
FROM scores s JOIN records r USING (record_id)
WHERE r.title_id = %(id)s
ORDER BY s.kind > 'popcornmeter', s.kind::text, r.site
