-- Whether a site may be asked, by its circuit and its day's budget, which all workers share; and
-- what else they know of it.

-- step: ask_site
-- Find out whether the site may be asked.
--
-- given.budget  what all workers together may ask of it
INSERT OR REPLACE INTO asked (number, state, reason, blocked, turn, day, used)
WITH known AS (
    -- One row, also for a site that was never asked.
    SELECT
        max(until) AS until,
        max(0, coalesce(max(until), 0), coalesce(max(probe_until), 0)) - :now AS closed,
        coalesce(max(reason), '') AS reason,
        max(:now, coalesce(max(next_at), 0)) AS turn,
        max(day) AS charged_day,
        max(used) AS used
    FROM sites
    WHERE site = :site
),
-- A request is charged to the day of its turn.
today AS (
    SELECT
        until,
        closed,
        reason,
        turn,
        CAST(turn / 86400 AS INTEGER) AS day,
        CASE WHEN charged_day >= CAST(turn / 86400 AS INTEGER) THEN used ELSE 0 END AS used
    FROM known
),
conditions AS (
    SELECT
        CASE
            WHEN until > :now THEN 'refused'
            WHEN closed > 0 THEN 'probed'
            WHEN used >= json_extract(:given, '$.budget.per_day') THEN 'budget_spent'
            WHEN until IS NOT NULL THEN 'half_open'
            ELSE 'open'
        END AS state,
        today.*
    FROM today
)
SELECT
    1,
    state,
    CASE state WHEN 'budget_spent' THEN 'the daily budget is exhausted' ELSE reason END,
    -- In ms, and above 0 until the time has come.
    CAST(
        0.999 + 1000 * CASE state
            WHEN 'budget_spent' THEN (day + 1) * 86400 - :now
            ELSE max(0, closed)
        END
        AS INTEGER
    ),
    turn,
    day,
    used
FROM conditions;

-- step: ask
-- Tell whether a site may be asked, or note what it has answered.
--
-- :charge  whether a request is charged
-- given.refusal  the reason and the pause (s), when the site has blocked us
-- :has_answered  whether it has answered the probe
-- The reply is a `SiteReply`.

-- include tell_time
INSERT INTO sites (site, day, used, next_at, reason, until, trips)
SELECT
    :site,
    0,
    0,
    0,
    json_extract(:given, '$.refusal.reason'),
    :now + min(json_extract(:given, '$.refusal.seconds'), :longest_pause_seconds),
    1
WHERE json_extract(:given, '$.refusal') IS NOT NULL
ON CONFLICT DO UPDATE
SET until = CASE
        -- A request that was on its way is refused, too: then the longest pause counts.
        WHEN until > :now THEN max(until, :now + json_extract(:given, '$.refusal.seconds'))
        -- Each refusal doubles the pause before; a shift by more than 30 bits is as long.
        ELSE :now + min(
            json_extract(:given, '$.refusal.seconds') * (1 << min(trips, 30)),
            :longest_pause_seconds
        )
    END,
    reason = CASE WHEN until > :now THEN reason ELSE excluded.reason END,
    trips = trips + (until IS NULL OR until <= :now),
    probe_until = CASE WHEN until > :now THEN probe_until END;

UPDATE sites
SET reason = '', until = NULL, trips = 0, probe_until = NULL
WHERE site = :site AND :has_answered;

-- include ask_site
UPDATE asked
SET is_charged = :charge AND blocked = 0;

INSERT INTO sites (site, day, used, next_at, reason, trips)
SELECT
    :site,
    day,
    used + 1,
    turn + coalesce(:spacing / json_extract(:given, '$.budget.per_second'), 0),
    '',
    0
FROM asked
WHERE is_charged
ON CONFLICT DO UPDATE
SET day = excluded.day,
    used = excluded.used,
    next_at = excluded.next_at,
    -- After that another worker sends a probe.
    probe_until = CASE (SELECT state FROM asked)
        WHEN 'half_open' THEN :now + :probe_seconds
        ELSE probe_until
    END;

SELECT json_object(
    'state', state,
    'blocked', blocked,
    'reason', reason,
    'probing', is_charged AND state = 'half_open',
    'delay', CASE WHEN is_charged THEN CAST(0.999 + 1000 * (turn - :now) AS INTEGER) ELSE 0 END,
    'used', used + is_charged
)
FROM asked;

-- step: read_robots
SELECT json_object('text', text, 'fetched_at', fetched_at)
FROM robots
WHERE host = :host;

-- step: keep_robots
INSERT OR REPLACE INTO robots (host, text, fetched_at)
VALUES (:host, :text, :now);

-- step: exchange_bans
-- given.changes  what is kept of a ban, by the proxy's key; null to delete it
DELETE FROM bans
WHERE site = :site
    AND proxy IN (SELECT key FROM json_each(:given, '$.changes'));

INSERT INTO bans (site, proxy, ban)
SELECT :site, key, CAST(value AS BLOB)
FROM json_each(:given, '$.changes')
WHERE value IS NOT NULL;

SELECT json_group_object(proxy, CAST(ban AS TEXT))
FROM bans
WHERE site = :site;
