-- What each site says of a title, with genres. id, sites: in their order.
SELECT r.*,
    ARRAY(SELECT g.name FROM record_genres rg JOIN genres g USING (genre_id)
          WHERE rg.record_id = r.record_id ORDER BY rg.position) AS genres
FROM records r WHERE r.title_id = %(id)s
ORDER BY array_position(%(sites)s::site[], r.site)
