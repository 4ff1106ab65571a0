-- step: open
-- Join the run, or begin the next pass.
--
-- :requested_at  Unix time when the worker was requested; null where :age says it
-- :age  seconds since then
-- The reply is an `Opened`.

-- include tell_time
-- include expire
DELETE FROM expired;

INSERT INTO expired (gone)
SELECT coalesce(max(expired_open), 0)
FROM runs
WHERE run = :run;

-- The pass that is over, when there is to be another one.
DELETE FROM runs
WHERE run = :run
    AND expired_open IS NOT NULL;

DELETE FROM runs
WHERE run = :run
    AND arguments = json_extract(:given, '$.worker.arguments')
    AND over_at IS NOT NULL
    AND CASE
        WHEN (SELECT has_lost FROM accounts WHERE run = :run) THEN true
        ELSE NOT json_extract(:given, '$.worker.is_once')
            AND over_at < coalesce(:requested_at, :now - :age)
    END
    -- Its requeued letters are a pass of their own.
    AND NOT (
        json_extract(:given, '$.worker.is_once')
        AND EXISTS (SELECT 1 FROM letters WHERE run = :run AND requeued_at IS NOT NULL)
    );

-- include begin
DELETE FROM requeued;

INSERT INTO requeued (letter)
SELECT letters.number
FROM letters
JOIN runs USING (run)
WHERE run = :run
    AND requeued_at IS NOT NULL
    AND over_at IS NOT NULL
    AND arguments = json_extract(:given, '$.worker.arguments')
    AND json_extract(:given, '$.worker.is_once');

-- include queue_letters
-- include end
SELECT json_object(
    'over_at', over_at,
    'other_arguments',
        CASE arguments WHEN json_extract(:given, '$.worker.arguments') THEN '' ELSE arguments END,
    'gone', (SELECT gone FROM expired)
)
FROM runs
WHERE run = :run;
