-- Pages that could not be read lately, by the field that was missing: of the latest ones, which an index finds. since, most.
SELECT site::text, split_part(reason, ':', 1) AS field, count(*) AS number, max(checked_at) AS latest,
    (array_agg(site_id ORDER BY checked_at DESC))[1] AS site_id, (array_agg(reason ORDER BY checked_at DESC))[1] AS reason
FROM (
    SELECT * FROM misses WHERE outcome = 'failed' AND checked_at > %(since)s ORDER BY checked_at DESC LIMIT %(most)s
) latest
WHERE reason ~ '^[a-z_][a-z0-9_.]*: '
GROUP BY site, field
ORDER BY number DESC, site, field
LIMIT 50
