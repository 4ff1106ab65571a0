-- The figures of each site; a null is a 0, or nothing. now; today: its beginning.
WITH counted AS (
    SELECT site,
        count(site_id) AS known,
        count(*) FILTER (WHERE site_id IS NULL AND site <> 'imdb') AS unfound,
        count(*) FILTER (WHERE site_id IS NOT NULL AND last_success IS NULL AND state <> 'absent') AS unread,
        count(*) FILTER (WHERE state = 'ok') AS ok, count(*) FILTER (WHERE state = 'absent') AS absent,
        count(*) FILTER (WHERE state = 'error') AS error, count(*) FILTER (WHERE state = 'blocked') AS blocked,
        count(*) FILTER (WHERE site_id IS NOT NULL AND (next_due <= %(now)s OR boost_due <= %(now)s)) AS due,
        count(*) FILTER (WHERE site_id IS NOT NULL AND next_due <= %(now)s AND (last_success IS NOT NULL OR state = 'absent')) AS overdue,
        count(*) FILTER (WHERE last_success >= %(today)s) AS read_today,
        count(*) FILTER (WHERE claimed_until > %(now)s) AS claimed,
        count(boost_due) AS boosted,
        min(last_success) AS oldest,
        -- A title costs a page in the days between its last page and its next one.
        sum(CASE WHEN state = 'ok' AND next_due > last_success THEN 86400 / date_part('epoch', next_due - last_success) ELSE 1 / 90.0 END)
            FILTER (WHERE site_id IS NOT NULL) AS pages_a_day
    FROM title_sites GROUP BY site
)
SELECT * FROM unnest(enum_range(NULL::site)) AS sites (site)
-- Joined only once they are counted: Postgres counts with one process where the sites stand outside.
LEFT JOIN counted USING (site)
LEFT JOIN (
    SELECT site, count(*) FILTER (WHERE outcome = 'failed') AS failed_today,
        count(*) FILTER (WHERE outcome IN ('blocked', 'disallowed')) AS blocked_today
    FROM misses WHERE checked_at >= %(today)s GROUP BY site
) missed USING (site)
LEFT JOIN (SELECT site, count(*) AS to_review FROM title_matches WHERE decision = 'review' GROUP BY site) doubtful USING (site)
LEFT JOIN (SELECT site, until AS paused_until, reason AS paused_because FROM site_pauses WHERE until > %(now)s) paused USING (site)
ORDER BY site
