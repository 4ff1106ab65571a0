-- Run once a connection of a store. What a batch consists of stands in temporary tables, which are emptied at its end.
-- A batch that is told durable is on the disk; a server's own stricter setting, for its replicas, is kept.
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local');
-- A batch is small beside what is stored, which is always found by an index. The planner, which can't know how few records
-- have a key, would now and then read the whole table for each.
SET enable_seqscan = off;
-- The statistics of a batch, which are made anew for each, need not be fine.
SET default_statistics_target = 10;
SET jit = off;  -- it would compile each statement, which takes longer than a batch: a scan that is switched off counts as a dear one

CREATE TEMPORARY TABLE incoming (
    record_id  bigint NOT NULL,
    title_id   bigint NOT NULL,
    is_new     boolean NOT NULL,  -- nothing was stored of it when `locate.sql` looked
    match_keys bigint[] NOT NULL,
    item       jsonb NOT NULL
) WITH (toast_tuple_target = 8160) ON COMMIT DELETE ROWS;
-- An item is read many times, and gone when the batch ends: it is never compressed, and stays in its row where a page has room for it.
ALTER TABLE incoming ALTER item SET STORAGE EXTERNAL;

CREATE TEMPORARY TABLE written (  -- what of it is newer than what was stored
    record_id  bigint PRIMARY KEY,
    is_new     boolean NOT NULL,  -- nothing was stored of it before
    site       site NOT NULL,
    scraped_at timestamptz NOT NULL
) ON COMMIT DELETE ROWS;

CREATE TEMPORARY VIEW written_items AS SELECT w.*, i.item FROM written w JOIN incoming i USING (record_id);

CREATE TEMPORARY TABLE incoming_credits (
    record_id  bigint NOT NULL,
    role       credit_role NOT NULL,
    position   integer NOT NULL,
    site       site NOT NULL,
    person_key text NOT NULL,
    site_person_id text,
    name       text,
    named_at   timestamptz NOT NULL,
    character  text,
    person_id  bigint,  -- null: the person is new
    known_name text
) ON COMMIT DELETE ROWS;
