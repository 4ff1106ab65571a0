-- Version 10: the series of a season or an episode is a foreign key, too. No row changes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(
    sql,
    '"series_title_id" INTEGER',
    '"series_title_id" INTEGER REFERENCES titles (title_id) ON DELETE SET NULL')
WHERE name = 'titles';
PRAGMA writable_schema = RESET;
