-- What is read of sites and runs, and the deletion of a run.

-- step: read
-- given.known  sites
-- :site, :name  null for all
-- The reply is a `FrontierReport`.
WITH used AS (
    SELECT
        runs.*,
        row_number() OVER (PARTITION BY site ORDER BY used_at DESC) AS place
    FROM runs
    WHERE coalesce(:site, site) = site
        AND coalesce(:name, name) = name
        AND max(used_at, coalesce((SELECT until FROM sites WHERE site = runs.site), 0))
            + :unused_seconds > :now
),
counts AS (
    SELECT
        run,
        site,
        name,
        count(*) - count(requeued_at) AS dead_letters,
        count(requeued_at) AS requeued
    FROM letters
    WHERE coalesce(:site, site) = site
        AND coalesce(:name, name) = name
        AND coalesce(requeued_at, died_at) + :letter_seconds > :now
    GROUP BY run
),
names AS (
    SELECT run, site, name
    FROM used
    UNION
    SELECT run, site, name
    FROM counts
),
reports AS (
    SELECT
        names.site,
        json_object(
            'site', names.site,
            'run', names.name,
            'now', :now,
            'arguments', coalesce(arguments, ''),
            -- A run of which only letters are left began and ended now.
            'started_at', coalesce(started_at, :now),
            'ended_at', CASE WHEN started_at IS NULL THEN :now ELSE over_at END,
            'dead_letters', coalesce(dead_letters, 0),
            'requeued', coalesce(requeued, 0),
            'account', json(coalesce(account, '{}')),
            'workers', (
                SELECT count(*)
                FROM workers
                WHERE workers.run = names.run AND alive_until > :now AND NOT is_dead(workers.name)
            )
        ) AS report
    FROM names
    LEFT JOIN used ON used.run = names.run
    LEFT JOIN accounts ON accounts.run = used.run
    LEFT JOIN counts ON counts.run = names.run
    WHERE coalesce(place, 0) <= :most_runs
),
known_sites AS (
    SELECT value AS site
    FROM json_each(:given, '$.known')
    UNION
    SELECT site
    FROM reports
)
SELECT json_object(
    'now', :now,
    'runs', (SELECT json_group_array(json(report)) FROM reports),
    'sites', (
        SELECT json_group_object(
            known_sites.site,
            json_object(
                'site', known_sites.site,
                'refusal', CASE WHEN until IS NOT NULL THEN reason END,
                'stopped_until', until,
                -- Its day is a later one when the clock was set back.
                'used_today',
                    CASE WHEN day >= CAST(:now / 86400 AS INTEGER) THEN used ELSE 0 END
            )
        )
        FROM known_sites
        LEFT JOIN sites ON sites.site = known_sites.site
    )
);

-- step: ids
-- Return `RequestIds`: of what is open, and of what died in the last :died_seconds.
SELECT json_object(
    'open', (SELECT json_group_array(id) FROM requests WHERE run = :run),
    'died', (
        SELECT json_group_array(id)
        FROM letters
        WHERE run = :run AND died_at >= :now - :died_seconds
    )
);

-- step: leave
-- Note that a worker has ended. What it leases is queued again by the next worker.
UPDATE requests
SET lease_until = :now
WHERE run = :run AND worker = :worker_name AND lease_until IS NOT NULL;

DELETE FROM workers
WHERE run = :run AND name = :worker_name;

-- step: drop_run
-- Delete a run with all that it has queued, but not its dead letters. The reply is whether it was
-- there.
SELECT json(
    EXISTS (SELECT 1 FROM runs WHERE run = :run)
    OR EXISTS (SELECT 1 FROM requests WHERE run = :run)
    OR EXISTS (SELECT 1 FROM letters WHERE run = :run AND requeued_at IS NOT NULL)
);

DELETE FROM runs
WHERE run = :run;

DELETE FROM requests
WHERE run = :run;

DELETE FROM seen
WHERE run = :run;

DELETE FROM limited_titles
WHERE run = :run;

DELETE FROM workers
WHERE run = :run;

DELETE FROM letters
WHERE run = :run AND requeued_at IS NOT NULL;
