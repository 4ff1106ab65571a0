-- step: take
-- Lease requests to a worker. It is the worker's heartbeat, too.
--
-- given.worker
-- given.renew  ids of the requests whose leases it renews
-- :is_idle  whether it holds none but the arguments
-- :want  how many more it asks for
-- The reply is a `Reply`.

-- include begin
-- include ask_site
UPDATE requests
SET lease_until = :now + json_extract(:given, '$.worker.lease_seconds')
WHERE run = :run
    AND worker = json_extract(:given, '$.worker.name')
    AND lease_until IS NOT NULL
    AND id IN (SELECT value FROM json_each(:given, '$.renew'));

INSERT OR REPLACE INTO workers (run, name, alive_until)
SELECT
    :run,
    json_extract(:given, '$.worker.name'),
    :now + json_extract(:given, '$.worker.lease_seconds');

-- What a worker leases whose process has ended is queued again at once.
UPDATE workers
SET alive_until = :now
WHERE run = :run AND is_dead(name);

UPDATE requests
SET lease_until = :now
WHERE run = :run
    AND lease_until > :now
    AND worker IN (SELECT name FROM workers WHERE run = :run AND alive_until <= :now);

DELETE FROM workers
WHERE run = :run AND alive_until <= :now;

UPDATE requests
SET lease_until = NULL, worker = NULL, place = 0
WHERE run = :run
    AND lease_until <= :now
    -- The arguments' worker may hold them as long as the run lasts: its death says nothing of them.
    AND (deliveries < json_extract(:given, '$.worker.deliveries') OR id GLOB 'arguments-*');

DELETE FROM buried;

INSERT INTO buried (request, id, reason)
SELECT
    number,
    id,
    'handed out ' || deliveries || ' times, each time to a worker that died before it was done'
FROM requests
WHERE run = :run AND lease_until <= :now;

-- include bury
DELETE FROM handed_out;

INSERT INTO handed_out (request, may_be_deadly)
SELECT number, deliveries >= :deliveries_alone AND id NOT GLOB 'arguments-*'
FROM requests
WHERE run = :run
    AND lease_until IS NULL
    -- While the site may not be asked, only what is not for it.
    AND level <= (SELECT CASE WHEN blocked > 0 THEN -1 ELSE 2 END FROM asked)
ORDER BY level, place, number
LIMIT (
    SELECT CASE
        WHEN asked.state = 'half_open' THEN min(:want, 1)
        -- Others get some of the last ones.
        WHEN count(*) > 1 THEN min(:want, (queued + 2 * count(*) - 1) / (2 * count(*)))
        ELSE :want
    END
    FROM workers, runs, asked
    WHERE workers.run = :run AND runs.run = :run
);

-- A request that may have killed two workers is leased alone.
DELETE FROM handed_out
WHERE position >= (
    SELECT min(CASE WHEN position = 1 AND :is_idle THEN 2 ELSE position END)
    FROM handed_out
    WHERE may_be_deadly
);

UPDATE requests
SET deliveries = deliveries + 1,
    worker = json_extract(:given, '$.worker.name'),
    lease_until = :now + json_extract(:given, '$.worker.lease_seconds')
WHERE number IN (SELECT request FROM handed_out);

-- include end
SELECT json_object(
    'site', (
        SELECT json_object('state', state, 'blocked', blocked, 'reason', reason, 'used', used)
        FROM asked
    ),
    'account', json(account),
    'deliveries', (
        SELECT json_group_array(
            json_object('id', id, 'number', deliveries, 'text', CAST(body AS TEXT))
        )
        FROM (
            SELECT id, deliveries, body
            FROM handed_out
            JOIN requests ON requests.number = handed_out.request
            ORDER BY handed_out.position
        )
    ),
    'new_dead_letters', (SELECT json_group_array(id) FROM buried),
    'was_lost', is_restored
)
FROM runs
JOIN accounts USING (run)
WHERE run = :run;

UPDATE runs
SET is_restored = 0
WHERE run = :run AND is_restored;
