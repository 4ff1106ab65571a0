-- Notes that a series' page covered seasons: a season's own page is due when the next page of the
-- series is late, or at once if a score was missing.
-- outcomes: JSON array of {site, requested_id, at, released, lacks_scores}.
UPDATE title_sites s
SET state = CASE WHEN o.lacks_scores THEN 'never' ELSE 'ok' END::site_state,
    last_success = CASE WHEN NOT o.lacks_scores THEN o.at END,
    next_due = CASE
        WHEN o.lacks_scores THEN o.at
        ELSE o.at + fetch_interval(s.title_id, o.released, o.at) + interval '14 days'
    END,
    failures = 0
FROM jsonb_to_recordset(%(outcomes)s) AS o (
    site text, requested_id text, at timestamptz, released date, lacks_scores boolean)
-- Unless the season's own page was fetched: that has more fields, so it counts until a later page
-- of the series.
WHERE s.site = o.site AND s.site_id = o.requested_id
    AND (s.last_success IS NULL OR NOT o.lacks_scores AND s.last_success < o.at)
