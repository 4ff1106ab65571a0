-- step: finish
-- End leases, and count what became of their requests.
--
-- given.ends  a list of `End`

-- include begin
DELETE FROM ends;

INSERT OR IGNORE INTO ends (request, letter, kind, reason, outcomes, is_title, is_counted)
SELECT
    requests.number,
    letters.number,
    json_extract(value, '$.kind'),
    json_extract(value, '$.reason'),
    json_extract(value, '$.outcomes'),
    coalesce(requests.is_title, letters.is_title),
    coalesce(letters.is_counted, 1)
FROM json_each(:given, '$.ends')
LEFT JOIN requests
    ON requests.run = :run AND requests.id = json_extract(value, '$.id')
-- The worker of a dead letter may have been taken for dead, and was only slow.
LEFT JOIN letters
    ON requests.number IS NULL
    AND letters.run = :run
    AND letters.id = json_extract(value, '$.id')
    AND letters.requeued_at IS NULL
WHERE CASE
    WHEN json_extract(value, '$.outcomes.stored') > 0
        THEN requests.number IS NOT NULL OR letters.number IS NOT NULL
    ELSE requests.deliveries = json_extract(value, '$.number')
        AND requests.lease_until IS NOT NULL
END;

-- Its outcomes take the place of a request. A letter was counted as dead, too.
UPDATE runs
SET requested = runs.requested - ended.requests,
    titles = runs.titles - ended.titles,
    dead = runs.dead - ended.letters
FROM (
    SELECT
        count(*) AS requests,
        count(letter) AS letters,
        total(is_title) AS titles
    FROM ends
    WHERE kind = 'done' AND is_counted
) AS ended
WHERE run = :run;

UPDATE runs
SET requested = runs.requested + counts.all_outcomes,
    titles = runs.titles + counts.all_outcomes - counts.read - counts.unread,
    stored = runs.stored + counts.stored,
    absent = runs.absent + counts.absent,
    failed = runs.failed + counts.failed,
    disallowed = runs.disallowed + counts.disallowed,
    fresh = runs.fresh + counts.fresh,
    read = runs.read + counts.read,
    unread = runs.unread + counts.unread
FROM (
    SELECT
        total(outcomes.value) AS all_outcomes,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'stored') AS stored,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'absent') AS absent,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'failed') AS failed,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'disallowed') AS disallowed,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'fresh') AS fresh,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'read') AS read,
        total(outcomes.value) FILTER (WHERE outcomes.key = 'unread') AS unread
    FROM ends, json_each(ends.outcomes) AS outcomes
    WHERE ends.is_counted
) AS counts
WHERE run = :run;

DELETE FROM letters
WHERE number IN (SELECT letter FROM ends);

DELETE FROM requests
WHERE number IN (SELECT request FROM ends WHERE kind = 'done');

DELETE FROM buried;

INSERT INTO buried (request, id, reason)
SELECT request, '', reason
FROM ends
WHERE kind = 'dead';

-- include bury
UPDATE requests
SET lease_until = NULL,
    worker = NULL,
    place = ends.kind = 'last',
    number = CASE ends.kind
        WHEN 'last' THEN (SELECT max(number) FROM requests) + ends.position
        ELSE number
    END,
    deliveries = max(0, deliveries - 1)
FROM ends
-- What is done or dead was deleted above.
WHERE ends.request = requests.number;

-- include end
