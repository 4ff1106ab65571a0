-- Version 3: the frontier's queue has what is due, and its leases are the only ones.

-- What was claimed is due as before.
ALTER TABLE title_sites
    DROP COLUMN IF EXISTS claimed_by,
    DROP COLUMN IF EXISTS claimed_until,
    DROP COLUMN IF EXISTS claims;

-- The queue that is fed with what is due on a site, so that no two fetch the same titles.
CREATE TABLE feeds (
    site    site PRIMARY KEY,
    queue   text NOT NULL,
    seen_at timestamptz NOT NULL
);

DROP TABLE IF EXISTS site_pauses;
