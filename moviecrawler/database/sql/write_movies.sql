-- Stores what stands in `incoming`, each title there once; `write_scores.sql` and `write_parts.sql` go on with it. Unchanged rows are not
-- touched.
-- What was stored with a time from the future, by a machine whose clock was wrong, gives way; see moviecrawler.clock.FUTURE.
-- margin: seconds by which a scrape must be newer than the stored one to take its place.
ANALYZE incoming;

INSERT INTO titles (title_id) SELECT title_id FROM incoming ON CONFLICT DO NOTHING;

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
        coalesce(m.keywords, '{}'), coalesce(m.interests, '{}'), coalesce(m.taglines, '{}'), coalesce(m.awards, '[]'),
        coalesce(m.related, '[]'), m.consensus, m.external_ids, m.season_count, m.episode_count,
        m.critic_review_count,
        ARRAY(SELECT c.name FROM unnest('{season_count,episode_count,critic_review_count}'::text[]) AS c (name) WHERE i.item -> c.name = 'null')
    FROM incoming i CROSS JOIN LATERAL jsonb_populate_record(NULL::records, i.item) m
    WHERE i.tells_more
    ON CONFLICT (site, site_id) DO UPDATE SET
        match_keys = excluded.match_keys, url = excluded.url, imdb_id = excluded.imdb_id, title = excluded.title,
        original_title = excluded.original_title, kind = excluded.kind, title_type = excluded.title_type,
        year = excluded.year, end_year = excluded.end_year, release_date = excluded.release_date,
        runtime_minutes = excluded.runtime_minutes, countries = excluded.countries, languages = excluded.languages,
        certificate = excluded.certificate, plot = excluded.plot, poster_url = excluded.poster_url,
        imdb_top250_rank = excluded.imdb_top250_rank, imdb_top250_tv_rank = excluded.imdb_top250_tv_rank,
        popularity_rank = excluded.popularity_rank, series_id = excluded.series_id,
        series_title = excluded.series_title, season = excluded.season, episode = excluded.episode,
        list_name = excluded.list_name, list_rank = excluded.list_rank, list_computed = excluded.list_computed,
        source = excluded.source, silent = excluded.silent, scraped_at = excluded.scraped_at, "fetch" = excluded."fetch",
        other_titles = excluded.other_titles, poster_width = excluded.poster_width, poster_height = excluded.poster_height,
        keywords = excluded.keywords, interests = excluded.interests, taglines = excluded.taglines, awards = excluded.awards,
        related = excluded.related, consensus = excluded.consensus, external_ids = excluded.external_ids,
        season_count = excluded.season_count, episode_count = excluded.episode_count,
        critic_review_count = excluded.critic_review_count, absent_counts = excluded.absent_counts
    -- As in catalogue.merging.supersedes.
    WHERE excluded.scraped_at = stored.scraped_at
        OR stored.scraped_at > now() + interval '10 minutes'
        OR excluded.scraped_at >= stored.scraped_at
            + CASE WHEN excluded.source > stored.source THEN 0 ELSE %(margin)s END * interval '1 second'
    RETURNING record_id, xmax = 0 AS is_new, site, scraped_at
)
INSERT INTO written
SELECT u.record_id, u.is_new, u.site, u.scraped_at, i.item FROM upserted u JOIN incoming i USING (record_id);
ANALYZE written
