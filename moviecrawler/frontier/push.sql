-- step: push
-- Queue requests.
--
-- given.pushes  a list of `Push`
-- The reply is how many were dropped, as they are open or were seen.

-- include begin
DELETE FROM pushes;

INSERT OR IGNORE INTO pushes (id, level, title, body, is_repeatable, is_new)
SELECT
    json_extract(value, '$.id') AS id,
    json_extract(value, '$.level'),
    json_extract(value, '$.title'),
    CAST(json_extract(value, '$.body') AS BLOB),
    json_extract(value, '$.is_repeatable') AS is_repeatable,
    NOT EXISTS (
        SELECT 1 FROM requests WHERE run = :run AND id = json_extract(value, '$.id')
    ) AND (
        json_extract(value, '$.is_repeatable')
        OR NOT EXISTS (SELECT 1 FROM seen WHERE run = :run AND id = json_extract(value, '$.id'))
    )
FROM json_each(:given, '$.pushes')
ORDER BY key;

SELECT json(
    json_array_length(:given, '$.pushes') - (SELECT count(*) FROM pushes WHERE is_new)
);

-- New titles, as long as the limit allows more.
INSERT INTO limited_titles (run, title, number)
SELECT :run, title, last_number + row_number() OVER (ORDER BY min(position))
FROM pushes, (
    SELECT coalesce(max(number), 0) AS last_number FROM limited_titles WHERE run = :run
)
WHERE is_new
    AND title <> ''
    AND NOT EXISTS (SELECT 1 FROM limited_titles WHERE run = :run AND title = pushes.title)
GROUP BY title
ORDER BY min(position)
LIMIT max(
    0,
    coalesce(json_extract(:given, '$.worker.limit'), 0)
        - coalesce((SELECT max(number) FROM limited_titles WHERE run = :run), 0)
);

DELETE FROM pushes
WHERE title <> ''
    AND json_extract(:given, '$.worker.limit') IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM limited_titles WHERE run = :run AND title = pushes.title);

INSERT INTO requests (run, id, level, is_title, body)
SELECT :run, id, level, title <> '', body
FROM pushes
WHERE is_new
ORDER BY position;

INSERT OR IGNORE INTO seen (run, id)
SELECT :run, id
FROM pushes
WHERE NOT is_repeatable;

UPDATE runs
SET requested = requested + (SELECT count(*) FROM pushes WHERE is_new),
    titles = titles + (SELECT count(*) FROM pushes WHERE is_new AND title <> '')
WHERE run = :run;

-- include end
