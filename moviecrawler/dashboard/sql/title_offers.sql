-- Where a title can be watched now: a row for each provider, however the sites write its name.
-- Arguments: id, offers (at most).
SELECT (array_agg(o.provider ORDER BY r.scraped_at DESC, o.provider COLLATE "C"))[1] AS provider,
    min(o.url) AS url,
    array_agg(DISTINCT
        concat_ws(' ', o.kind, 'per ' || o.scope, o.country, o.quality, trim_scale(o.price),
            o.currency)) AS offers,
    min(o.since) AS since, max(coalesce(o.seen_at, r.scraped_at)) AS seen_at,
    array_agg(DISTINCT r.site) AS sites,
    array_remove(array_agg(DISTINCT o.source), NULL) AS sources
FROM records r JOIN offers o USING (record_id)
WHERE r.title_id = %(id)s
GROUP BY regexp_replace(lower(o.provider), '[^[:alnum:]]', '', 'g')
ORDER BY lower(min(o.provider)) LIMIT %(offers)s
