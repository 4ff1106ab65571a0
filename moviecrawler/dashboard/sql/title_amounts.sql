-- The amounts of money of a title. id.
SELECT r.site::text, a.kind::text, a.value, a.currency FROM records r JOIN amounts a USING (record_id)
WHERE r.title_id = %(id)s ORDER BY r.site, a.kind
