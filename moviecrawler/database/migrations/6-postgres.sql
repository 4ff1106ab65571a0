-- Version 6: offers that have ended are kept, and records say when they were stored first.

CREATE TABLE ended_offers (
    "record_id" bigint NOT NULL,
    "ended_at" timestamptz NOT NULL,
    "position" integer NOT NULL,
    "provider" text NOT NULL,
    "kind" text NOT NULL,
    "country" text,
    "quality" text,
    "price" numeric,
    "currency" text,
    "url" text,
    "source" text,
    "since" timestamptz NOT NULL,
    PRIMARY KEY (record_id, ended_at, position)
);
CREATE INDEX ended_offers_ended_at
    ON ended_offers (ended_at);
ALTER TABLE records ADD COLUMN "added_at" timestamptz;
