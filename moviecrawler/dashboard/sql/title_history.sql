-- The latest changes of the scores of a title. Arguments: id, history (changes at most).
SELECT * FROM (
    SELECT r.site::text, h.kind::text AS kind, h.since, h.value::float, h.count, h.average::float
    FROM score_history h JOIN records r USING (record_id)
    WHERE r.title_id = %(id)s
    ORDER BY since DESC
    LIMIT %(history)s
) latest ORDER BY kind, site, since DESC
