-- The scores of a title, from each site. id.
SELECT r.site::text, r.url, r.scraped_at, r.source::text, s.kind::text, s.value::float, s.count, s.normalised::float
FROM records r JOIN scores s USING (record_id) WHERE r.title_id = %(id)s ORDER BY s.kind, r.site
