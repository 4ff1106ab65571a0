-- The figures of each site; a null is a 0, or nothing. now, today, fresh_year.
WITH counted AS (
    SELECT s.site,
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
        min(s.last_success) AS oldest
    FROM title_sites s JOIN titles t USING (title_id)
    GROUP BY s.site
), missed AS (
    SELECT site, count(*) FILTER (WHERE outcome = 'absent') AS absent_today,
        count(*) FILTER (WHERE outcome = 'failed') AS failed_today,
        count(*) FILTER (WHERE outcome IN ('blocked', 'disallowed')) AS blocked_today
    FROM misses WHERE checked_at >= %(today)s GROUP BY site
), doubtful AS (
    SELECT site, count(*) AS to_review FROM title_matches WHERE decision = 'review' GROUP BY site
), paused AS (
    SELECT site, until AS paused_until, reason AS paused_because FROM site_pauses WHERE until > %(now)s
)
SELECT *
FROM unnest(enum_range(NULL::site)) AS sites (site)
-- Joined only once they are counted: Postgres counts with one process where the sites stand outside.
LEFT JOIN counted USING (site) LEFT JOIN missed USING (site) LEFT JOIN doubtful USING (site) LEFT JOIN paused USING (site)
ORDER BY site
