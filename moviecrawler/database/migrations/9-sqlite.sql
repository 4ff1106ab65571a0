-- Version 9: foreign keys name the columns that they refer to, without which Datasette fails. No
-- row changes, so that no table is written anew.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(replace(replace(replace(
    sql,
    'REFERENCES sites', 'REFERENCES sites (site)'),
    'REFERENCES score_kinds', 'REFERENCES score_kinds (kind)'),
    'REFERENCES titles', 'REFERENCES titles (title_id)'),
    'REFERENCES records', 'REFERENCES records (record_id)')
WHERE type = 'table';
PRAGMA writable_schema = RESET;
