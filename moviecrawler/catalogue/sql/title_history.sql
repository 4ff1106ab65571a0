-- The latest changes of the scores of a title. id, history.
SELECT * FROM (
    SELECT r.site::text, h.kind::text, h.since, h.value::float, h.count
    FROM records r JOIN score_history h USING (record_id)
    WHERE r.title_id = %(id)s ORDER BY h.since DESC LIMIT %(history)s
) latest ORDER BY kind, site, since
