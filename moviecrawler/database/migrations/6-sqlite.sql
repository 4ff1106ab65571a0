-- Version 6: offers that have ended are kept, and records say when they were stored first.

CREATE TABLE ended_offers (
    "record_id" INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    "ended_at" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "provider" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "country" TEXT,
    "quality" TEXT,
    "price" NUMERIC,
    "currency" TEXT,
    "url" TEXT,
    "source" TEXT,
    "since" TEXT NOT NULL,
    PRIMARY KEY (record_id, ended_at, position)
) WITHOUT ROWID;
CREATE INDEX ended_offers_ended_at
    ON ended_offers (ended_at);
ALTER TABLE records ADD COLUMN "added_at" TEXT;
