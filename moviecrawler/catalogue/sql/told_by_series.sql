-- Notes that the page of their series has told of seasons. A season follows its series: its own page is due only when the series' page stays
-- away; at once when that lacked a score. A series of which a season is new may run again. outcomes: JSON array of {site, site_id, at,
-- released, lacks_scores}; now.
WITH told AS (
    UPDATE title_sites s
    SET state = CASE WHEN o.lacks_scores THEN 'never' ELSE 'ok' END::site_state, last_success = CASE WHEN NOT o.lacks_scores THEN o.at END,
        next_due = CASE WHEN o.lacks_scores THEN o.at ELSE o.at + f.every + least(f.every, interval '14 days') END, failures = 0
    FROM jsonb_to_recordset(%(outcomes)s) AS o (site site, site_id text, at timestamptz, released date, lacks_scores boolean)
    JOIN title_sites known USING (site, site_id)
    JOIN titles t ON t.title_id = known.title_id
    CROSS JOIN LATERAL (
        SELECT fetch_interval(coalesce(o.released, make_date(t.year, 12, 31)), airs(t.title_id, %(now)s), o.at) AS every
    ) f
    -- Its own page has told more, or later.
    WHERE s.site = o.site AND s.site_id = o.site_id AND (s.last_success IS NULL OR NOT o.lacks_scores AND s.last_success < o.at)
    RETURNING t.series_title_id
)
SELECT hasten_series(ARRAY(SELECT DISTINCT series_title_id FROM told WHERE series_title_id IS NOT NULL), %(now)s)
