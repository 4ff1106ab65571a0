-- Version 10: all references are foreign keys. Rows that belong to nothing, as after records were
-- deleted by hand, are moved to a table `orphans` that nothing of ours reads; it is made only where
-- there are some. A season or an episode whose series is gone has none until one is read.
DO $$
DECLARE
    reference record;
BEGIN
    CREATE TABLE orphans (table_name text NOT NULL, "row" jsonb NOT NULL);
    FOR reference IN
        VALUES
            ('credits', 'record_id', 'records', 'CASCADE'),
            ('offers', 'record_id', 'records', 'CASCADE'),
            ('ended_offers', 'record_id', 'records', 'CASCADE'),
            ('related', 'record_id', 'records', 'CASCADE'),
            ('awards', 'record_id', 'records', 'CASCADE'),
            ('amounts', 'record_id', 'records', 'CASCADE'),
            ('other_titles', 'record_id', 'records', 'CASCADE'),
            ('title_sites', 'title_id', 'titles', 'CASCADE'),
            ('title_sites', 'site', 'sites', 'NO ACTION')
    LOOP
        EXECUTE format(
            'WITH orphaned AS (
                DELETE FROM %1$I child
                WHERE NOT EXISTS (SELECT FROM %3$I parent WHERE parent.%2$I = child.%2$I)
                RETURNING to_jsonb(child) AS "row"
            )
            INSERT INTO orphans SELECT %1$L, "row" FROM orphaned;
            ALTER TABLE %1$I ADD FOREIGN KEY (%2$I) REFERENCES %3$I ON DELETE %4$s',
            reference.column1, reference.column2, reference.column3, reference.column4);
    END LOOP;
    IF NOT EXISTS (SELECT FROM orphans) THEN
        DROP TABLE orphans;
    END IF;
END
$$;
UPDATE titles t SET series_title_id = NULL
WHERE series_title_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM titles s WHERE s.title_id = t.series_title_id);
ALTER TABLE titles ADD FOREIGN KEY (series_title_id) REFERENCES titles ON DELETE SET NULL;

DROP FUNCTION IF EXISTS title_of_series(text, text);
