-- Stores the records of `incoming`, which has each title once; `write_scores.sql` and
-- `write_parts.sql` store the rest.
-- Names in braces: columns are the fields of a movie that are columns of `records`; values are
-- those of an item `m`; changes is the SET clause of a known record; others are the fields that
-- have a column or a table: all but these are facets.
WITH upserted AS (
    INSERT INTO records AS stored (record_id, title_id, match_keys, facets, {columns})
    SELECT i.record_id, i.title_id, i.match_keys, i.item - '{others}'::text[], {values}
    FROM incoming i CROSS JOIN LATERAL jsonb_populate_record(NULL::records, i.item) m
    ON CONFLICT (site, site_id) DO UPDATE SET {changes}
    RETURNING record_id, title_id, title, original_title, kind, year, runtime_minutes
)
-- The title gets the names that `sync_catalogue` would give it, but no IMDb id: its record may
-- still be matched with a title that has it.
INSERT INTO titles (title_id, title, original_title, kind, year, runtime_minutes)
SELECT title_id, title, original_title, kind, year, runtime_minutes
FROM upserted JOIN incoming USING (record_id, title_id)
WHERE is_new
ON CONFLICT DO NOTHING
