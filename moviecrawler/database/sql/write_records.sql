-- Stores the records of what stands in `incoming`, each title there once; `write_scores.sql` and `write_parts.sql` go on with it.
-- Of the names in braces: columns are the fields of a movie that are columns of `records`, values what an item `m` has of them, changes what is
-- done to a record that is stored, and others the fields that are columns or have a table: all but these are facets.
WITH upserted AS (
    INSERT INTO records AS stored (record_id, title_id, match_keys, facets, {columns})
    SELECT i.record_id, i.title_id, i.match_keys, i.item - '{others}'::text[], {values}
    FROM incoming i CROSS JOIN LATERAL jsonb_populate_record(NULL::records, i.item) m
    ON CONFLICT (site, site_id) DO UPDATE SET {changes}
    RETURNING record_id, title_id, site, title, original_title, kind, year, runtime_minutes, scraped_at
), begun AS (
    -- With the names that `sync_catalogue` would give it, and not with the IMDb id: the record may go to a title of which more is known.
    INSERT INTO titles (title_id, title, original_title, kind, year, runtime_minutes)
    SELECT title_id, title, original_title, kind, year, runtime_minutes FROM upserted JOIN incoming USING (record_id, title_id) WHERE is_new
    ON CONFLICT DO NOTHING
)
INSERT INTO written SELECT record_id, is_new, site, scraped_at FROM upserted JOIN incoming USING (record_id)
