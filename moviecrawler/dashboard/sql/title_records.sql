-- What each site says of a title. Arguments: id, sites (in their order).
SELECT * FROM movies WHERE title_id = %(id)s ORDER BY array_position(%(sites)s::site[], site)
