-- Runs once for each connection of a store. Temporary tables hold a batch, and are emptied at its
-- end.
-- A batch that is reported durable must be on the disk; a stricter setting of the server, for its
-- replicas, is kept.
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local');
-- Rows for a batch are always found by an index. The planner, which can't know how few records have
-- a key, would now and then read a whole table instead.
SET enable_seqscan = off;
-- Each batch is analysed, for which rough statistics suffice.
SET default_statistics_target = 10;
-- enable_seqscan makes plans look so expensive that each would be compiled, which takes longer than
-- a batch.
SET jit = off;

CREATE TEMPORARY TABLE incoming (
    record_id  bigint PRIMARY KEY,
    title_id   bigint NOT NULL,
    is_new     boolean NOT NULL,  -- `locate.sql` found no record
    site       site NOT NULL,
    scraped_at timestamptz NOT NULL,
    match_keys bigint[] NOT NULL,
    item       jsonb NOT NULL
) WITH (toast_tuple_target = 8160) ON COMMIT DELETE ROWS;
-- An item is read many times and short-lived: it is not compressed, and stays in its row if it fits
-- into a page.
ALTER TABLE incoming ALTER item SET STORAGE EXTERNAL;

CREATE TEMPORARY TABLE incoming_credits (
    record_id  bigint NOT NULL,
    role       credit_role NOT NULL,
    position   integer NOT NULL,
    person_key text NOT NULL,
    site_person_id text,
    name       text,
    character  text,
    person_id  bigint,  -- null: the person is new
    known_name text
) ON COMMIT DELETE ROWS;
