-- Gives records to titles, or to newer records of the same titles. `sync_catalogue` comes next.
-- moves: JSON array of {record_id, title_id, newer_id, placed_by_hand};
-- reasons: of {title_id, matched_by}.

UPDATE records r
SET title_id = m.title_id, newer_id = m.newer_id, placed_by_hand = m.placed_by_hand
FROM jsonb_to_recordset(%(moves)s)
    AS m (record_id bigint, title_id bigint, newer_id bigint, placed_by_hand boolean)
WHERE r.record_id = m.record_id;

-- The id of an older record is that of no title: it is not fetched when it is due.
UPDATE title_sites s
SET site_id = NULL,
    id_source = NULL,
    id_confidence = NULL,
    id_verified = false,
    state = 'never',
    last_success = NULL
FROM jsonb_to_recordset(%(moves)s) AS m (record_id bigint, newer_id bigint)
JOIN records r USING (record_id)
WHERE m.newer_id IS NOT NULL AND s.site = r.site AND s.site_id = r.site_id;

UPDATE titles t SET matched_by = g.matched_by
FROM jsonb_to_recordset(%(reasons)s) AS g (title_id bigint, matched_by jsonb)
WHERE t.title_id = g.title_id AND t.matched_by <> g.matched_by
