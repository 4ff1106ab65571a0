-- Ids that sites have given up: the page of a title that was requested by `old_id` is that of
-- `new_id`, to which the site redirected for good. Created in older databases when they are opened.
CREATE TABLE IF NOT EXISTS aliases (
    site TEXT NOT NULL,
    old_id TEXT NOT NULL,
    new_id TEXT NOT NULL,
    since TEXT NOT NULL,  -- when the site last redirected
    PRIMARY KEY (site, old_id)
) WITHOUT ROWID;
