-- The figures of each site. now, today.
SELECT e.site::text,
    coalesce(s.known, 0) AS known, coalesce(s.unfound, 0) AS unfound, coalesce(s.in_date, 0) AS in_date,
    coalesce(s.due, 0) AS due, coalesce(s.unread, 0) AS unread, coalesce(s.boosted, 0) AS boosted,
    coalesce(s.read_today, 0) AS read_today,
    coalesce(m.absent, 0) AS absent_today, coalesce(m.failed, 0) AS failed_today, coalesce(m.blocked, 0) AS blocked_today,
    (SELECT count(*) FROM title_matches r WHERE r.decision = 'review' AND r.site = e.site) AS to_review,
    p.until AS paused_until, p.reason AS paused_because
FROM unnest(enum_range(NULL::site)) AS e (site)
LEFT JOIN (
    SELECT site,
        count(*) FILTER (WHERE site_id IS NOT NULL) AS known,
        count(*) FILTER (WHERE site_id IS NULL AND site <> 'imdb') AS unfound,
        count(*) FILTER (WHERE site_id IS NOT NULL AND next_due > %(now)s) AS in_date,
        count(*) FILTER (WHERE site_id IS NOT NULL AND (next_due <= %(now)s OR boost_due <= %(now)s)) AS due,
        count(*) FILTER (WHERE last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL) AS unread,
        count(*) FILTER (WHERE boost_due IS NOT NULL) AS boosted,
        count(*) FILTER (WHERE last_success >= %(today)s) AS read_today
    FROM title_sites GROUP BY site
) s USING (site)
LEFT JOIN (
    SELECT site,
        count(*) FILTER (WHERE outcome = 'absent') AS absent,
        count(*) FILTER (WHERE outcome = 'failed') AS failed,
        count(*) FILTER (WHERE outcome IN ('blocked', 'disallowed')) AS blocked
    FROM misses WHERE checked_at >= %(today)s GROUP BY site
) m USING (site)
LEFT JOIN site_pauses p ON p.site = e.site AND p.until > %(now)s
ORDER BY e.site
