-- Deletes the aliases of ids that have a page of their own again. Returns these ids.
-- sites, site_ids, read: arrays of equal length.
DELETE FROM aliases a
USING unnest(%(sites)s::site[], %(site_ids)s::text[], %(read)s::timestamptz[])
    AS page (site, site_id, read_at)
WHERE a.site = page.site AND a.old_id = page.site_id AND a.since <= page.read_at
RETURNING a.site::text, a.old_id
