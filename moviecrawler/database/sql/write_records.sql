-- Stores the records of what stands in `incoming`, each title there once; `write_scores.sql` and `write_parts.sql` go on with it. Run once for records that are stored, and are locked, and once for those that are new.
-- Of the names in braces: columns are those of a movie's fields that have no table of their own, and values what an item `m` has of them; is_new
-- is which records; action what is done to one that is stored.
-- A new one that another process has stored since `locate.sql` looked is left alone: it would be changed without what that process has read.
WITH upserted AS (
    INSERT INTO records AS stored (record_id, title_id, match_keys, {columns})
    SELECT i.record_id, i.title_id, i.match_keys, {values}
    FROM incoming i CROSS JOIN LATERAL jsonb_populate_record(NULL::records, i.item) m
    WHERE i.is_new = {is_new}
    ORDER BY m.site, m.site_id  -- all processes wait for each other in this order
    ON CONFLICT (site, site_id) DO {action}
    RETURNING record_id, title_id, site, title, original_title, kind, year, runtime_minutes, scraped_at
), begun AS (
    -- With the names that `settle_titles` would give it, and not with the IMDb id: the record may go to a title of which more is known.
    INSERT INTO titles (title_id, title, original_title, kind, year, runtime_minutes)
    SELECT title_id, title, original_title, kind, year, runtime_minutes FROM upserted WHERE {is_new}
    ON CONFLICT DO NOTHING
)
INSERT INTO written
SELECT record_id, {is_new}, site, scraped_at FROM upserted
