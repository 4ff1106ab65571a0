-- The amounts of money of a title. Arguments: id.
SELECT r.site::text, a.kind, a.value, a.currency
FROM records r CROSS JOIN LATERAL jsonb_to_recordset(r.facets -> 'amounts') AS a (kind text, value bigint, currency text)
WHERE r.title_id = %(id)s ORDER BY r.site, array_position('{budget,opening_weekend,domestic,worldwide}', a.kind)
