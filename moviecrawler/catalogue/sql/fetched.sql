-- Writes outcomes. An outcome belongs to (1) the title that was due, if its id is requested_id or
-- page_id; (2) else the title that has one of them; (3) the title that was due, where no id was
-- requested.
-- outcomes: JSON array of {n, site, title_id, requested_id, page_id, other_id, outcome, at,
--     released}
WITH found AS (
    SELECT DISTINCT ON (s.title_id, s.site)
        s.title_id, s.site, o.requested_id, o.other_id, o.outcome, o.at,
        s.failures + (o.outcome = 'error')::integer AS failed,
        fetch_interval(s.title_id, o.released, o.at) AS every
    FROM jsonb_to_recordset(%(outcomes)s) AS o (
        n integer, site text, title_id bigint, requested_id text, page_id text, other_id text,
        outcome text, at timestamptz, released date)
    CROSS JOIN LATERAL (
        SELECT s.* FROM title_sites s
        WHERE s.site = o.site
            AND (s.site_id IN (o.requested_id, o.page_id)
                OR o.requested_id IS NULL AND s.title_id = o.title_id)
        ORDER BY s.title_id = o.title_id DESC NULLS LAST, s.site_id = o.page_id DESC NULLS LAST
        LIMIT 1
    ) s
    ORDER BY s.title_id, s.site, o.n DESC
), reviewed AS (
    -- Its own page has come where another title's had come before.
    DELETE FROM title_matches m
    USING found o
    WHERE o.outcome = 'ok' AND m.title_id = o.title_id AND m.site = o.site
        AND m.site_id = o.requested_id AND m.decision = 'review' AND NOT m.by_hand
), due AS (
    -- After an error a title is due a day later, doubled with each further error in a row, up to
    -- its interval; after the page of another title in 14 days. What was put off, as the network or
    -- this program failed, is tried again in an hour, and does not count.
    SELECT o.*,
        CASE
            WHEN o.outcome = 'ok' THEN o.at + o.every
            WHEN o.outcome = 'absent' THEN o.at + interval '90 days'
            WHEN o.outcome = 'put off' THEN greatest(s.next_due, o.at + interval '1 hour')
            WHEN o.other_id IS NOT NULL THEN o.at + interval '14 days'
            ELSE o.at + least(interval '1 day' * 2 ^ least(o.failed - 1, 10), o.every)
        END AS again,
        -- A success or an absence ends the boost; after a failure it holds for a few more tries.
        s.boost_due IS NOT NULL
            AND (o.outcome = 'put off' OR o.outcome = 'error' AND o.failed < 3) AS is_boosted
    FROM found o JOIN title_sites s USING (title_id, site)
)
UPDATE title_sites s
SET state = CASE WHEN o.outcome = 'put off' THEN s.state ELSE o.outcome::site_state END,
    next_due = o.again,
    last_success = CASE WHEN o.outcome = 'ok' THEN o.at ELSE s.last_success END,
    failures = CASE WHEN o.outcome IN ('error', 'put off') THEN o.failed ELSE 0 END,
    boost = CASE WHEN is_boosted THEN s.boost ELSE 0 END,
    -- A series that runs is boosted half a day before its week is over, so that its pages don't
    -- wait behind a long backlog.
    boost_due = CASE
        WHEN is_boosted THEN greatest(s.boost_due, o.again)
        WHEN o.outcome = 'ok' AND o.every = interval '7 days' THEN o.again - interval '12 hours'
    END
FROM due o WHERE s.title_id = o.title_id AND s.site = o.site
