-- Stores the records of what stands in `incoming`, each title there once; `write_scores.sql` and `write_parts.sql` go on with it. Unchanged rows
-- are not touched. Run once for records that are stored, and are locked, and once for those that are new.
-- Of the names in braces: is_new is which of them; action what is done to a record that is stored. A new one that another process
-- has stored since `locate.sql` looked is left alone: it would be changed without what that process has read.
WITH upserted AS (
    INSERT INTO records AS stored (record_id, title_id, match_keys, site, site_id, url, imdb_id, title, original_title,
        kind, title_type, year, end_year, release_date, runtime_minutes, countries, languages, certificate, plot,
        poster_url, imdb_top250_rank, imdb_top250_tv_rank, popularity_rank, series_id, series_title, season, episode,
        list_name, list_rank, list_computed, source, silent, scraped_at, "fetch", other_titles, poster_width,
        poster_height, keywords, interests, taglines, awards, related, consensus, external_ids, season_count, episode_count,
        critic_review_count, absent_counts)
    SELECT i.record_id, i.title_id, i.match_keys, m.site, m.site_id, m.url, m.imdb_id, m.title, m.original_title,
        -- As in catalogue.stored.
        CASE WHEN m.kind = 'series' AND m.season IS NOT NULL THEN 'season' ELSE m.kind END, m.title_type, m.year, m.end_year, m.release_date, m.runtime_minutes, m.countries, m.languages,
        m.certificate, m.plot, m.poster_url, m.imdb_top250_rank, m.imdb_top250_tv_rank, m.popularity_rank, m.series_id,
        m.series_title, m.season, m.episode, m.list_name, m.list_rank, m.list_computed, m.source,
        m.silent, m.scraped_at, m."fetch", coalesce(m.other_titles, '[]'), m.poster_width, m.poster_height,
        coalesce(m.keywords, '{{}}'), coalesce(m.interests, '{{}}'), coalesce(m.taglines, '{{}}'), coalesce(m.awards, '[]'),
        coalesce(m.related, '[]'), m.consensus, m.external_ids, m.season_count, m.episode_count,
        m.critic_review_count,
        ARRAY(SELECT c.name FROM unnest('{{season_count,episode_count,critic_review_count}}'::text[]) AS c (name) WHERE i.item -> c.name = 'null')
    FROM incoming i CROSS JOIN LATERAL jsonb_populate_record(NULL::records, i.item) m
    WHERE i.tells_more AND i.is_new = {is_new}
    ORDER BY m.site, m.site_id  -- all processes wait for each other in this order
    ON CONFLICT (site, site_id) DO {action}
    RETURNING record_id, title_id, site, scraped_at
), begun AS (
    INSERT INTO titles (title_id) SELECT title_id FROM upserted WHERE {is_new} ON CONFLICT DO NOTHING
)
INSERT INTO written
SELECT u.record_id, {is_new}, u.site, u.scraped_at, i.item FROM upserted u JOIN incoming i USING (record_id)
