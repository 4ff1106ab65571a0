-- Writes how tries ended, and ends their claims. An outcome is of the claimed title while that has one of the two ids, else of the title that
-- has one by now. outcomes: JSON array of {n, site, title_id, asked, got, outcome, at, released, search_again}; without ids, the claimed
-- title is meant whatever its id is. now.
WITH told AS (
    SELECT DISTINCT ON (s.title_id, s.site) o.*, s.title_id AS of_title, s.failures + (o.outcome = 'error')::integer AS failed,
        f.every, f.airs, t.kind
    FROM jsonb_to_recordset(%(outcomes)s) AS o (n integer, site site, title_id bigint, asked text, got text, outcome site_state,
        at timestamptz, released date, search_again boolean)
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT 1 AS place, s.* FROM title_sites s
            WHERE s.site = o.site AND s.title_id = o.title_id AND (o.asked IS NULL OR s.site_id IN (o.asked, o.got))
            UNION ALL SELECT 2, s.* FROM title_sites s WHERE s.site = o.site AND s.site_id = o.got
            UNION ALL SELECT 3, s.* FROM title_sites s WHERE s.site = o.site AND s.site_id = o.asked
        ) found
        ORDER BY place LIMIT 1
    ) s
    JOIN titles t ON t.title_id = s.title_id
    CROSS JOIN LATERAL airs(t.title_id, %(now)s) AS airs
    CROSS JOIN LATERAL (
        SELECT fetch_interval(coalesce(o.released, make_date(t.year, 12, 31)), airs, o.at) AS every, airs
    ) f
    ORDER BY s.title_id, s.site, o.n DESC
), due AS (
    SELECT o.*, s.boost_due, due_again(o.outcome, o.at, o.failed, o.every, s.next_due) AS again
    FROM told o JOIN title_sites s ON s.title_id = o.of_title AND s.site = o.site
), given_back AS (
    -- Claims on titles that were given another id meanwhile.
    UPDATE title_sites s SET claimed_by = NULL, claimed_until = NULL, claims = 0
    FROM jsonb_to_recordset(%(outcomes)s) AS o (site site, title_id bigint)
    WHERE s.title_id = o.title_id AND s.site = o.site
        AND NOT EXISTS (SELECT FROM told WHERE told.of_title = o.title_id AND told.site = o.site)
)
UPDATE title_sites s
SET state = CASE WHEN o.search_again THEN 'never' ELSE o.outcome END,
    last_success = CASE WHEN o.search_again THEN NULL WHEN o.outcome = 'ok' THEN o.at ELSE s.last_success END,
    next_due = CASE WHEN o.search_again THEN o.at ELSE o.again END,
    failures = CASE WHEN o.outcome IN ('error', 'blocked') THEN o.failed ELSE 0 END,
    -- A success or an absence has served the boost, a failure is tried again a few times. A series that airs is fetched every week, half a day
    -- ahead, so that its pages don't wait behind a long backlog.
    boost_due = CASE WHEN o.outcome = 'ok' AND o.airs AND o.kind = 'series' THEN o.again - interval '12 hours'
        WHEN o.outcome = 'blocked' THEN s.boost_due WHEN o.outcome = 'error' AND o.failed < 3 AND s.boost_due IS NOT NULL
        THEN greatest(s.boost_due, o.again) END,
    boost = CASE WHEN s.boost_due IS NOT NULL AND (o.outcome = 'blocked' OR o.outcome = 'error' AND o.failed < 3) THEN s.boost ELSE 0 END,
    claimed_by = NULL, claimed_until = NULL, claims = 0
FROM due o WHERE s.title_id = o.of_title AND s.site = o.site
