-- The ids that lists of a site name, by their keys, but not those that are known to be a title's.
-- Parameters: site; keys.
SELECT g.key, g.site_id, g.source, g.year FROM listed_ids g
WHERE g.site = %(site)s AND g.key = ANY (%(keys)s) AND NOT EXISTS (
    SELECT FROM title_sites o JOIN titles t USING (title_id)
    WHERE o.site = g.site AND o.site_id = g.site_id AND (t.imdb_id IS NOT NULL OR o.id_verified))
