-- Runs once for each connection of a store, when the schema is up to date.
-- A batch that is reported durable must be on the disk; a stricter setting of the server, for its
-- replicas, is kept.
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local');
-- Rows for a batch are always found by an index. The planner, which can't know how few records have
-- a key, would now and then read a whole table instead.
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
-- That makes plans look so expensive that each would be compiled, which takes longer than
-- a batch.
SET jit = off;
