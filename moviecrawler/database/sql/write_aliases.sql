-- Stores aliases, unless a page of the old id's own was read later. Returns the ids that have new
-- aliases.
-- sites, old_ids, new_ids, since: arrays of equal length; each old id is in them once.
INSERT INTO aliases AS known (site, old_id, new_id, since)
SELECT a.site, a.old_id, a.new_id, a.since
FROM unnest(
    %(sites)s::site[], %(old_ids)s::text[], %(new_ids)s::text[], %(since)s::timestamptz[]
) AS a (site, old_id, new_id, since)
WHERE NOT EXISTS (
    SELECT FROM records r
    WHERE r.site = a.site AND r.site_id = a.old_id AND r.source <> 'list'
        AND r.scraped_at > a.since)
ON CONFLICT (site, old_id) DO UPDATE SET
    new_id = excluded.new_id,
    since = excluded.since
WHERE excluded.since >= known.since
RETURNING site::text, new_id
