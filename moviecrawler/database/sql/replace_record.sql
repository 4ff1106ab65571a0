-- What is done to a stored record when a newer reading comes, or when what is stored has a time from the future, by a machine whose clock was
-- wrong: see moviecrawler.clock.FUTURE. margin: seconds by which a reading must be newer than the stored one to take its place.
UPDATE SET
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
