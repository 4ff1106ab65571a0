-- The titles of records that may be the same titles as others on their sites, as one's id is an
-- alias of the other's.
-- records, sites, site_ids: arrays of equal length.
SELECT DISTINCT asking.record_id, found.title_id
FROM unnest(%(records)s::bigint[], %(sites)s::text[], %(site_ids)s::text[])
    AS asking (record_id, site, site_id)
CROSS JOIN LATERAL (
    SELECT a.old_id AS site_id
    FROM aliases a
    WHERE a.site = asking.site AND a.new_id = asking.site_id
    UNION
    SELECT a.new_id
    FROM aliases a
    WHERE a.site = asking.site AND a.old_id = asking.site_id
) other
CROSS JOIN LATERAL (
    SELECT coalesce(r.title_id, newer.title_id) AS title_id
    FROM records r
    LEFT JOIN records newer ON newer.record_id = r.newer_id
    WHERE r.site = asking.site AND r.site_id = other.site_id
    UNION
    -- A title of the catalogue whose page was not read yet.
    SELECT s.title_id
    FROM title_sites s
    WHERE s.site = asking.site AND s.site_id = other.site_id
) found
