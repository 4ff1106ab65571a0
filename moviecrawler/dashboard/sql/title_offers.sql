-- Where a title can be watched now: so many offers. id, offers.
SELECT r.site::text, o.provider, o.kind::text, o.country, o.quality, o.price::float, o.currency, o.url, o.source, o.since, coalesce(o.seen_at, r.scraped_at) AS seen_at
FROM records r JOIN offers o USING (record_id)
WHERE r.title_id = %(id)s AND o.ended IS NULL
ORDER BY o.kind, o.provider, o.country, o.quality, r.site LIMIT %(offers)s
