-- The credits of a title: of the cast, so many. id, cast.
SELECT r.site::text, c.role::text, c.position, c.name, c.character
FROM records r JOIN credits c USING (record_id)
WHERE r.title_id = %(id)s AND (c.role <> 'cast' OR c.position <= %(cast)s)
ORDER BY array_position('{imdb,rottentomatoes,metacritic}'::site[], r.site), c.role, c.position
