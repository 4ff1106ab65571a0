-- What operators do with dead letters.

-- step: requeue
-- Queue a dead letter in the pass that is under way, or have it wait for the next one.
-- The reply is whether it was there.

-- include expire
UPDATE letters
SET requeued_at = :now
WHERE run = :run AND id = :letter_id AND requeued_at IS NULL;

SELECT json(changes());

DELETE FROM requeued;

INSERT INTO requeued (letter)
SELECT letters.number
FROM letters
JOIN runs USING (run)
WHERE run = :run
    AND id = :letter_id
    AND requeued_at = :now
    AND over_at IS NULL
    AND expired_open IS NULL;

-- include queue_letters
UPDATE runs
SET used_at = :now
WHERE run = :run AND EXISTS (SELECT 1 FROM requeued);

-- step: drop_letter
-- Delete a dead letter, which stays counted as dead. The reply is whether it was there.
DELETE FROM letters
WHERE run = :run AND id = :letter_id AND requeued_at IS NULL;

SELECT json(changes());

-- step: letters
-- Return `letters`, a list of `DeadLetter`.
SELECT json_object(
    'letters', json_group_array(
        json_object(
            'run', json_array(:site, :name),
            'id', id,
            'reason', reason,
            'at', died_at,
            'body', CAST(body AS TEXT)
        )
    )
)
FROM (
    SELECT id, reason, died_at, body
    FROM letters
    WHERE run = :run AND requeued_at IS NULL AND died_at + :letter_seconds > :now
    ORDER BY number
);
