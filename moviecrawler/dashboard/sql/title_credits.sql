-- The credits of a title: of each role, those of the first site that names any.
-- Arguments: id, cast (members at most), sites (in their order).
SELECT role, site, name, character
FROM (
    SELECT
        c.role,
        r.site,
        c.position,
        c.name,
        c.character,
        rank() OVER (
            PARTITION BY c.role
            ORDER BY array_position(%(sites)s::text[], r.site)
        ) AS place
    FROM records r JOIN credits c USING (record_id)
    WHERE r.title_id = %(id)s AND (c.role <> 'cast' OR c.position <= %(cast)s)
) AS named
WHERE place = 1
ORDER BY array_position(ARRAY['director', 'writer', 'creator', 'cast'], role), position
