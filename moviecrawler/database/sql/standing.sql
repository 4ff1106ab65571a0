-- What records are taken for: their titles, and the records of other sites beside them. records: array of ids.
SELECT r.record_id, r.site::text, r.site_id, r.title AS record_title, t.imdb_id, t.title, t.matched_by,
    ARRAY(SELECT o.site || ' ' || o.site_id FROM records o
        WHERE o.title_id = r.title_id AND o.record_id <> r.record_id ORDER BY o.site, o.site_id) AS beside
FROM records r JOIN titles t USING (title_id)
WHERE r.record_id = ANY (%(records)s)
ORDER BY r.record_id
