-- Pages that were compared with a title. Arguments: id.
SELECT site::text, site_id, decision::text, score, reasons, by_hand, decided_at FROM title_matches
WHERE title_id = %(id)s ORDER BY decided_at DESC LIMIT 20
