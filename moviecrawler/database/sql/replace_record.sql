-- What is done to a stored record when a newer reading comes, or when what is stored has a time from the future, by a machine whose clock was
-- wrong: see moviecrawler.clock.FUTURE. changes: of the columns of a movie's fields. margin: seconds by which a reading must be newer than the stored one to take its place.
UPDATE SET
    match_keys = excluded.match_keys, absent_counts = excluded.absent_counts, {changes}
-- As in catalogue.merging.supersedes.
WHERE excluded.scraped_at = stored.scraped_at
    OR stored.scraped_at > now() + interval '10 minutes'
    OR excluded.scraped_at >= stored.scraped_at
        + CASE WHEN excluded.source > stored.source THEN 0 ELSE %(margin)s END * interval '1 second'
