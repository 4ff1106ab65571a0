-- Version 2: ids that sites have given up, and older records of a title on one site.

-- The page of a title that was requested by `old_id` is that of `new_id`, to which the site
-- redirected for good. A page of its own ends an alias.
CREATE TABLE aliases (
    site   site NOT NULL,
    old_id text NOT NULL,
    new_id text NOT NULL,
    since  timestamptz NOT NULL,  -- when the site last redirected
    PRIMARY KEY (site, old_id)
);
CREATE INDEX aliases_new_id ON aliases (site, new_id);

-- A title has one record of each site. An older record of the same title on the same site, such as
-- one under an id that is an alias now, belongs to the newer one instead.
ALTER TABLE records
    ALTER COLUMN title_id DROP NOT NULL,
    ADD COLUMN newer_id bigint REFERENCES records,
    ADD CHECK ((title_id IS NULL) <> (newer_id IS NULL));
CREATE INDEX records_newer_id ON records (newer_id) WHERE newer_id IS NOT NULL;

DROP FUNCTION IF EXISTS rename_record(site, text, text);
