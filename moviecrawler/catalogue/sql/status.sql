-- The figures of each site; a null is a 0, or nothing. now, today, fresh_year.
WITH missed AS (
    SELECT site, count(*) FILTER (WHERE outcome = 'absent') AS absent,
        count(*) FILTER (WHERE outcome = 'failed') AS failed,
        count(*) FILTER (WHERE outcome IN ('blocked', 'disallowed')) AS blocked
    FROM misses WHERE checked_at >= %(today)s GROUP BY site
), paused AS (
    SELECT site, until, reason FROM site_pauses WHERE until > %(now)s
)
SELECT e.site::text,
    count(*) FILTER (WHERE s.site_id IS NOT NULL) AS known,
    count(*) FILTER (WHERE s.site_id IS NOT NULL AND t.kind = 'series') AS series,
    count(*) FILTER (WHERE s.site_id IS NOT NULL AND t.kind = 'season') AS seasons,
    count(*) FILTER (WHERE s.site_id IS NULL AND s.site <> 'imdb') AS unfound,
    count(*) FILTER (WHERE s.state = 'never' AND s.site_id IS NOT NULL) AS never,
    count(*) FILTER (WHERE s.state = 'ok') AS ok,
    count(*) FILTER (WHERE s.state = 'absent') AS absent,
    count(*) FILTER (WHERE s.state = 'error') AS error,
    count(*) FILTER (WHERE s.state = 'blocked') AS blocked,
    count(*) FILTER (WHERE s.site_id IS NOT NULL AND (s.next_due <= %(now)s OR s.boost_due <= %(now)s)) AS due,
    count(*) FILTER (WHERE s.site_id IS NOT NULL AND s.next_due <= %(now)s
        AND (s.last_success IS NOT NULL OR s.state = 'absent')) AS overdue,
    count(*) FILTER (WHERE s.site_id IS NOT NULL AND s.next_due > %(now)s) AS in_date,
    count(*) FILTER (WHERE s.last_success >= %(today)s) AS read_today,
    count(*) FILTER (WHERE s.claimed_until > %(now)s) AS claimed,
    count(*) FILTER (WHERE s.boost_due IS NOT NULL AND s.boost > 0) AS boosted,
    count(*) FILTER (WHERE s.boost_due IS NOT NULL AND s.boost = 0) AS airing,
    count(*) FILTER (WHERE s.last_success IS NULL AND s.state <> 'absent' AND s.site_id IS NOT NULL) AS unread,
    count(*) FILTER (WHERE s.last_success IS NOT NULL AND t.year >= %(fresh_year)s) AS fresh,
    count(*) FILTER (WHERE s.last_success IS NOT NULL AND NOT coalesce(t.year >= %(fresh_year)s, false)) AS old,
    min(s.last_success) AS oldest,
    (SELECT absent FROM missed m WHERE m.site = e.site) AS absent_today,
    (SELECT failed FROM missed m WHERE m.site = e.site) AS failed_today,
    (SELECT blocked FROM missed m WHERE m.site = e.site) AS blocked_today,
    (SELECT count(*) FROM title_matches m WHERE m.site = e.site AND m.decision = 'review') AS to_review,
    (SELECT until FROM paused p WHERE p.site = e.site) AS paused_until,
    (SELECT reason FROM paused p WHERE p.site = e.site) AS paused_because
FROM unnest(enum_range(NULL::site)) AS e (site)
LEFT JOIN (title_sites s JOIN titles t USING (title_id)) ON s.site = e.site
GROUP BY e.site
ORDER BY e.site
