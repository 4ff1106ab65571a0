-- The latest changes of the scores of a title, those of its older records among them.
-- Arguments: id, history (changes at most).
WITH shown AS (
    SELECT r.record_id FROM records r WHERE r.title_id = %(id)s
), own AS (
    SELECT record_id FROM shown
    UNION ALL
    SELECT r.record_id FROM records r JOIN shown s ON r.newer_id = s.record_id
), latest AS (
    SELECT r.site, h.kind, h.since, h.value::float, h.count, h.average::float,
        (h.value * 100.0 / k.highest)::float AS normalised
    FROM own
    JOIN records r USING (record_id)
    JOIN score_history h USING (record_id)
    JOIN score_kinds k ON k.kind = h.kind
    ORDER BY h.since DESC
    LIMIT %(history)s
)
SELECT * FROM latest ORDER BY kind, site, since DESC
