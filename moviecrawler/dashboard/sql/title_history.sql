-- The latest changes of the scores of a title. id, history.
SELECT * FROM (
    SELECT site::text, kind, since, value::float, count, average::float FROM all_score_history
    WHERE title_id = %(id)s ORDER BY since DESC LIMIT %(history)s
) latest ORDER BY kind, site, since DESC
