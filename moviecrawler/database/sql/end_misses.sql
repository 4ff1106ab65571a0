-- Deletes the misses of titles whose page or dataset row was read later.
-- sites, site_ids, read: arrays of equal length.
DELETE FROM misses m
USING unnest(%(sites)s::site[], %(site_ids)s::text[], %(read)s::timestamptz[])
    AS a (site, site_id, read_at)
WHERE m.site = a.site AND m.site_id = a.site_id
    AND (m.checked_at <= a.read_at OR m.checked_at > now() + interval '10 minutes')
