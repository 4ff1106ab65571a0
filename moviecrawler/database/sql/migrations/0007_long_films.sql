-- The longest film known has 51,420 minutes.
ALTER TABLE records DROP CONSTRAINT records_runtime_minutes_check,
    ADD CONSTRAINT records_runtime_minutes_check CHECK (runtime_minutes BETWEEN 1 AND 100000);
