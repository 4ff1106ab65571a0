-- What the steps of a run share.
--
-- A step is the statements below its name, in this order, within one transaction. What one of them
-- returns is the step's reply: one value of JSON. Their parameters:
--
-- :given  JSON of what the step was given, as the script of Redis gets it
-- :site, :name  the site and the name of the run
-- :run  the number of the run: a digest of both
-- :now  Unix time
-- and each field of `Terms`, and what else the step was given, by its name

-- step: tell_time
-- When the clock was set back, all times are moved back, by a trigger.
INSERT INTO clock (number, at)
VALUES (1, :now)
ON CONFLICT DO UPDATE SET at = :now WHERE abs(at - :now) > 1;

-- step: begin
-- include tell_time
-- Begin the pass of a run that has no state, by a trigger.
INSERT INTO begun (run, site, name, arguments, started_at, is_restored)
SELECT
    :run,
    :site,
    :name,
    json_extract(:given, '$.worker.arguments'),
    :now,
    :step <> 'open' OR EXISTS (SELECT 1 FROM requests WHERE run = :run)
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE run = :run);

-- step: expire
DELETE FROM letters
WHERE coalesce(requeued_at, died_at) + :letter_seconds <= :now;

DELETE FROM runs
WHERE used_at + :letter_seconds <= :now AND expired_open IS NOT NULL;

UPDATE runs
SET expired_open = queued + leased
WHERE expired_open IS NULL
    AND used_at + :unused_seconds <= :now
    AND coalesce((SELECT until FROM sites WHERE site = runs.site), 0) + :unused_seconds <= :now;

UPDATE sites
SET until = NULL, probe_until = NULL, trips = 0, reason = ''
WHERE until + :circuit_seconds <= :now;

-- step: queue_letters
-- Queue the letters in `requeued`. One that the pass counts as dead is dead no more; any other is a
-- request more.
UPDATE runs
SET requested = runs.requested + letters_queued.requested,
    titles = runs.titles + letters_queued.titles,
    dead = runs.dead - letters_queued.dead
FROM (
    SELECT
        coalesce(sum(NOT is_counted), 0) AS requested,
        coalesce(sum(is_title AND NOT is_counted), 0) AS titles,
        coalesce(sum(is_counted), 0) AS dead
    FROM letters
    WHERE number IN (SELECT letter FROM requeued)
        AND NOT EXISTS (SELECT 1 FROM requests WHERE run = :run AND id = letters.id)
) AS letters_queued
WHERE run = :run;

INSERT OR IGNORE INTO requests (run, id, level, is_title, body)
SELECT run, id, level, is_title, body
FROM letters
WHERE number IN (SELECT letter FROM requeued)
ORDER BY requeued_at, number;

DELETE FROM letters
WHERE number IN (SELECT letter FROM requeued);

-- step: bury
-- Make dead letters of the requests in `buried`. A trigger deletes them.
UPDATE runs
SET dead = dead + (SELECT count(*) FROM buried)
WHERE run = :run;

INSERT OR REPLACE INTO letters (run, id, site, name, reason, died_at, level, is_title, body)
SELECT
    run,
    requests.id,
    :site,
    :name,
    buried.reason,
    :now,
    level,
    is_title,
    body
FROM buried
JOIN requests ON requests.number = buried.request;

-- step: end
-- Note when the run was over and that it is in use. Every step of a worker ends with this.
UPDATE runs
SET used_at = :now,
    over_at = CASE WHEN queued + leased = 0 THEN coalesce(over_at, :now) END
WHERE run = :run;
