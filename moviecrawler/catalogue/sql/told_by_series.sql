-- Notes that the page of their series has told of seasons: their own pages are due when that stays away, and at once when it lacked a score.
-- outcomes: JSON array of {site, asked_id, at, released, lacks_scores}.
UPDATE title_sites s
SET state = CASE WHEN o.lacks_scores THEN 'never' ELSE 'ok' END::site_state, last_success = CASE WHEN NOT o.lacks_scores THEN o.at END,
    next_due = CASE WHEN o.lacks_scores THEN o.at ELSE o.at + fetch_interval(s.title_id, o.released, o.at) + interval '14 days' END, failures = 0
FROM jsonb_to_recordset(%(outcomes)s) AS o (site site, asked_id text, at timestamptz, released date, lacks_scores boolean)
-- Its own page has told more, or later.
WHERE s.site = o.site AND s.site_id = o.asked_id AND (s.last_success IS NULL OR NOT o.lacks_scores AND s.last_success < o.at)
