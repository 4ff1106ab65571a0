-- additive: a version of moviecrawler that does not know it works with it.
-- Records that are stored, and have not been compared with those of other sites since they came or their names changed. Whoever
-- wrote them does that next, without a lock; when it has died, another process.
CREATE TABLE unjoined (
    record_id bigint PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    owner     text NOT NULL,  -- the process that wrote it
    since     timestamptz NOT NULL DEFAULT now()
);
