-- The scores of a title, from each site, the finer ones last. id.
SELECT s.site::text, r.url, r.scraped_at, r.source::text, s.kind, s.value::float, s.count, s.normalised::float, s.average::float,
    s.liked, s.neutral, s.disliked, s.certified
FROM all_scores s JOIN records r USING (record_id)
WHERE s.title_id = %(id)s
ORDER BY position('_' in replace(s.kind, 'metacritic_user', '')) > 0, s.kind, s.site
