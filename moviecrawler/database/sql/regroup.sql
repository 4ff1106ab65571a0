-- Gives records to titles.
-- moves: JSON array of {record_id, title_id};
-- reasons: of {title_id, matched_by}.

UPDATE records r SET title_id = m.title_id
FROM jsonb_to_recordset(%(moves)s) AS m (record_id bigint, title_id bigint)
WHERE r.record_id = m.record_id;

UPDATE titles t SET matched_by = g.matched_by
FROM jsonb_to_recordset(%(reasons)s) AS g (title_id bigint, matched_by text[])
WHERE t.title_id = g.title_id AND t.matched_by <> g.matched_by
