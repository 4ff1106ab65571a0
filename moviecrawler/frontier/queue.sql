-- The tables of queue.sqlite3. Times are Unix times. `run` is a digest of the site and the name of
-- a run, so that rows of other tables find their run again when the row in `runs` was lost.

-- One row is the state of a run: its pass that is under way, or the latest.
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    site TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    started_at REAL NOT NULL,
    over_at REAL,
    used_at REAL NOT NULL,
    -- How many requests were open when it expired; null while it has not.
    expired_open INTEGER,
    -- Whether it was made again after it was lost, which is still to be said.
    is_restored INTEGER NOT NULL DEFAULT 0,
    requested INTEGER NOT NULL DEFAULT 0,
    titles INTEGER NOT NULL DEFAULT 0,
    stored INTEGER NOT NULL DEFAULT 0,
    absent INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    disallowed INTEGER NOT NULL DEFAULT 0,
    fresh INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    read INTEGER NOT NULL DEFAULT 0,
    unread INTEGER NOT NULL DEFAULT 0,
    -- Kept by the triggers below, so that rows that others delete are not counted either.
    queued INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row is a request that is queued (`lease_until` is null) or leased.
CREATE TABLE requests (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    id TEXT NOT NULL,
    level INTEGER NOT NULL,
    -- 0 for one that was put back: it goes before those of its level that were only queued (1).
    place INTEGER NOT NULL DEFAULT 1,
    deliveries INTEGER NOT NULL DEFAULT 0,
    is_title INTEGER NOT NULL,
    body BLOB NOT NULL,
    worker TEXT,
    lease_until REAL,
    UNIQUE (run, id)
) STRICT;

-- The next requests of a run are the first of this index; `number` is its last column.
CREATE INDEX queue ON requests (run, level, place) WHERE lease_until IS NULL;
CREATE INDEX leases ON requests (run, worker, lease_until) WHERE lease_until IS NOT NULL;

CREATE TRIGGER request_queued AFTER INSERT ON requests
BEGIN
    UPDATE runs
    SET queued = queued + (NEW.lease_until IS NULL),
        leased = leased + (NEW.lease_until IS NOT NULL)
    WHERE run = NEW.run;
END;

CREATE TRIGGER request_moved AFTER UPDATE OF lease_until ON requests
WHEN (OLD.lease_until IS NULL) <> (NEW.lease_until IS NULL)
BEGIN
    UPDATE runs
    SET queued = queued + (NEW.lease_until IS NULL) - (OLD.lease_until IS NULL),
        leased = leased + (OLD.lease_until IS NULL) - (NEW.lease_until IS NULL)
    WHERE run = NEW.run;
END;

CREATE TRIGGER request_removed AFTER DELETE ON requests
BEGIN
    UPDATE runs
    SET queued = queued - (OLD.lease_until IS NULL),
        leased = leased - (OLD.lease_until IS NOT NULL)
    WHERE run = OLD.run;
END;

-- One row is the id of a request that the pass has queued.
CREATE TABLE seen (
    run INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- One row is a title that counts for the limit of a pass, as the `number`-th.
CREATE TABLE limited_titles (
    run INTEGER NOT NULL,
    title TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (run, title)
) STRICT, WITHOUT ROWID;

CREATE INDEX last_title ON limited_titles (run, number);

-- One row is a dead letter, or one that waits for the next pass (`requeued_at` is not null).
CREATE TABLE letters (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    id TEXT NOT NULL,
    site TEXT NOT NULL,
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    died_at REAL NOT NULL,
    requeued_at REAL,
    -- Whether the account of the pass counts it; of letters of earlier passes it does not.
    is_counted INTEGER NOT NULL DEFAULT 1,
    level INTEGER NOT NULL,
    is_title INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (run, id)
) STRICT;

CREATE TRIGGER request_died AFTER INSERT ON letters
BEGIN
    DELETE FROM requests WHERE run = NEW.run AND id = NEW.id;
END;

-- One row is a worker of a run, until it leaves or has not been heard of for its lease.
CREATE TABLE workers (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    alive_until REAL NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

-- A pass has seen nothing when it begins.
CREATE TRIGGER pass_begun AFTER INSERT ON runs
BEGIN
    DELETE FROM seen WHERE run = NEW.run;
    DELETE FROM limited_titles WHERE run = NEW.run;
END;

-- Of a run that has expired only its row and its letters are left.
CREATE TRIGGER run_expired AFTER UPDATE OF expired_open ON runs
BEGIN
    DELETE FROM requests WHERE run = NEW.run;
    DELETE FROM seen WHERE run = NEW.run;
    DELETE FROM limited_titles WHERE run = NEW.run;
    DELETE FROM workers WHERE run = NEW.run;
END;

-- One row is the budget and the circuit of a site. `until` is null while the circuit is closed.
CREATE TABLE sites (
    site TEXT PRIMARY KEY,
    day INTEGER NOT NULL,
    used INTEGER NOT NULL,
    next_at REAL NOT NULL,
    reason TEXT NOT NULL,
    until REAL,
    trips INTEGER NOT NULL,
    probe_until REAL
) STRICT, WITHOUT ROWID;

-- The only row is the time of the latest step.
CREATE TABLE clock (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL
) STRICT;

-- When the clock was set back, all times are moved back as far, so that nothing waits for long.
-- What a run has done was then done a minute ago at least, before any worker that starts now.
CREATE TRIGGER clock_set_back AFTER UPDATE ON clock
WHEN NEW.at < OLD.at
BEGIN
    UPDATE runs
    SET used_at = used_at + NEW.at - OLD.at - 60,
        started_at = started_at + NEW.at - OLD.at - 60,
        over_at = over_at + NEW.at - OLD.at - 60;
    UPDATE requests
    SET lease_until = lease_until + NEW.at - OLD.at
    WHERE lease_until IS NOT NULL;
    UPDATE workers
    SET alive_until = alive_until + NEW.at - OLD.at;
    UPDATE sites
    SET next_at = next_at + NEW.at - OLD.at,
        until = until + NEW.at - OLD.at,
        probe_until = probe_until + NEW.at - OLD.at,
        -- No day gets a second budget.
        day = min(day, CAST(max(next_at + NEW.at - OLD.at, NEW.at) / 86400 AS INTEGER));
END;

-- One row is the robots.txt of a scheme and host, as it was fetched last.
CREATE TABLE robots (
    host TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    fetched_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- One row is a ban of a proxy by a site. `ban` is JSON.
CREATE TABLE bans (
    site TEXT NOT NULL,
    proxy TEXT NOT NULL,
    ban BLOB NOT NULL,
    PRIMARY KEY (site, proxy)
) STRICT, WITHOUT ROWID;
