-- The credits of a title. Arguments: id, cast (members at most), sites (in their order).
SELECT r.site, c.role, c.position, c.name, c.character
FROM records r JOIN credits c USING (record_id)
WHERE r.title_id = %(id)s AND (c.role <> 'cast' OR c.position <= %(cast)s)
ORDER BY array_position(%(sites)s::text[], r.site), c.role, c.position
