-- The figures of each site; null represents 0 or nothing. Parameters: now; today (its beginning).
WITH counted AS (
    SELECT site,
        count(site_id) AS known,
        count(*) FILTER (WHERE site_id IS NULL AND site <> 'imdb') AS unfound,
        count(*) FILTER (
            WHERE site_id IS NOT NULL AND last_success IS NULL AND state <> 'absent') AS unread,
        count(*) FILTER (WHERE state = 'ok') AS ok,
        count(*) FILTER (WHERE state = 'absent') AS absent,
        count(*) FILTER (WHERE state = 'error') AS error,
        count(*) FILTER (WHERE state = 'blocked') AS blocked,
        count(*) FILTER (
            WHERE site_id IS NOT NULL AND (next_due <= %(now)s OR boost_due <= %(now)s)) AS due,
        count(*) FILTER (
            WHERE site_id IS NOT NULL AND next_due <= %(now)s
                AND (last_success IS NOT NULL OR state = 'absent')) AS overdue,
        count(*) FILTER (WHERE last_success >= %(today)s) AS read_today,
        count(boost_due) AS boosted,
        min(last_success) AS oldest,
        -- A title costs one page in the days from its last page to its next.
        sum(CASE
            WHEN state = 'ok' AND next_due > last_success
            THEN 86400 / date_part('epoch', next_due - last_success)
            ELSE 1 / 90.0
        END) FILTER (WHERE site_id IS NOT NULL) AS pages_a_day
    FROM title_sites GROUP BY site
)
SELECT * FROM (SELECT site FROM sites) AS known
-- The sites are joined after counting, because Postgres would otherwise count with one process.
LEFT JOIN counted USING (site)
LEFT JOIN (
    SELECT site, count(*) FILTER (WHERE outcome = 'failed') AS failed_today,
        count(*) FILTER (WHERE outcome IN ('blocked', 'disallowed')) AS blocked_today
    FROM misses WHERE checked_at >= %(today)s GROUP BY site
) missed USING (site)
LEFT JOIN (
    SELECT site, count(*) AS to_review FROM title_matches WHERE decision = 'review' GROUP BY site
) doubtful USING (site)
ORDER BY site
