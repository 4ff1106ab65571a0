-- What each connection has beside the tables of the file: its options, and the tables that a step
-- fills on its way.

PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
-- 16 MB. With SQLite's own 2 MB, queueing a million requests would read the indexes again and
-- again.
PRAGMA cache_size = -16000;
-- What is kept of the log of changes after a large step, such as clearing a million rows: 64 MB.
PRAGMA journal_size_limit = 64000000;
PRAGMA temp_store = MEMORY;

-- One row is the run whose pass the step begins, as it has no state.
CREATE TEMP TABLE begun (
    run INTEGER NOT NULL,
    site TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    started_at REAL NOT NULL,
    -- Whether the state was lost.
    is_restored INTEGER NOT NULL
);

CREATE TEMP TRIGGER begin_pass AFTER INSERT ON begun
BEGIN
    -- A new pass does not count the dead letters that there are. After a loss, they are counted, so
    -- that no failure is hidden.
    UPDATE letters
    SET is_counted = NEW.is_restored
    WHERE run = NEW.run;

    -- What represents the arguments: who leases that queues what they name. Its id was never used.
    INSERT INTO requests (run, id, level, is_title, body)
    VALUES (NEW.run, 'arguments-' || lower(hex(randomblob(16))), -1, 0, x'');

    -- The letters that wait.
    INSERT OR IGNORE INTO requests (run, id, level, is_title, body)
    SELECT run, id, level, is_title, body
    FROM letters
    WHERE run = NEW.run AND requeued_at IS NOT NULL
    ORDER BY requeued_at, number;

    DELETE FROM letters
    WHERE run = NEW.run AND requeued_at IS NOT NULL;

    INSERT INTO runs (
        run, site, name, arguments, started_at, used_at, is_restored,
        queued, leased, requested, titles, dead
    )
    SELECT
        NEW.run,
        NEW.site,
        NEW.name,
        NEW.arguments,
        NEW.started_at,
        NEW.started_at,
        NEW.is_restored,
        open - leased,
        leased,
        open + dead,
        open_titles + dead_titles,
        dead
    FROM (
        SELECT
            count(*) AS open,
            count(lease_until) AS leased,
            coalesce(sum(is_title), 0) AS open_titles
        FROM requests
        WHERE run = NEW.run
    ), (
        SELECT count(*) AS dead, coalesce(sum(is_title), 0) AS dead_titles
        FROM letters
        WHERE run = NEW.run AND is_counted
    );

    DELETE FROM begun;
END;

-- The only row is what the step has found out of its site. Times are as in `SiteReply`.
CREATE TEMP TABLE asked (
    number INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    blocked INTEGER NOT NULL,
    -- Unix time at which the next request may be sent, its day, and the requests of that day.
    turn REAL NOT NULL,
    day INTEGER NOT NULL,
    used INTEGER NOT NULL,
    is_charged INTEGER NOT NULL DEFAULT 0
);

-- One row is a request that the step is to queue.
CREATE TEMP TABLE pushes (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    level INTEGER NOT NULL,
    title TEXT NOT NULL,
    body BLOB NOT NULL,
    is_repeatable INTEGER NOT NULL,
    -- Whether it is not open, and the pass has not seen it.
    is_new INTEGER NOT NULL
);

-- One row is a request that the step leases.
CREATE TEMP TABLE handed_out (
    position INTEGER PRIMARY KEY,
    request INTEGER NOT NULL,
    may_be_deadly INTEGER NOT NULL
);

-- One row is a request that the step makes a dead letter of.
CREATE TEMP TABLE buried (
    request INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    reason TEXT NOT NULL
);

-- One row is the end of a lease that counts, or of one whose request is a dead letter since.
CREATE TEMP TABLE ends (
    position INTEGER PRIMARY KEY,
    request INTEGER UNIQUE,
    letter INTEGER UNIQUE,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- JSON: how many by outcome.
    outcomes TEXT NOT NULL,
    is_title INTEGER NOT NULL,
    -- Whether the account of the pass has the request: it lacks letters of earlier passes.
    is_counted INTEGER NOT NULL
);

-- One row is a dead letter that the step queues again.
CREATE TEMP TABLE requeued (
    letter INTEGER PRIMARY KEY
);

-- The only row is how many requests the run has lost when it expired.
CREATE TEMP TABLE expired (
    gone INTEGER NOT NULL
);

-- One row is a run, with its account as JSON.
CREATE TEMP VIEW accounts AS
SELECT
    run,
    requested > stored + absent + failed + disallowed + fresh + dead + read + unread
        + queued + leased AS has_lost,
    json_object(
        'requested', requested,
        'titles', titles,
        'stored', stored,
        'absent', absent,
        'failed', failed,
        'disallowed', disallowed,
        'fresh', fresh,
        'dead', dead,
        'read', read,
        'unread', unread,
        'open', queued + leased
    ) AS account
FROM runs;
