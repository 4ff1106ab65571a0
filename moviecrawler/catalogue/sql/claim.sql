-- Claims titles of a site whose id there is known, and returns them in the order in which to fetch them. Boosted titles have at most half of a
-- claim; of the rest, unread titles (the most popular first) have two thirds and stale ones (the longest due first) one; what one leaves the
-- others take. A fraction of a title is drawn by chance, so that small claims share as large ones do. Rows that others have locked
-- are passed over. A title that was claimed `most` times without an outcome may be what kills the workers: that counts as an error.
-- The conditions name those of the indexes word by word. site; size; worker; now; until; most.
WITH boosted AS (
    SELECT title_id, boost, boost_due FROM title_sites
    WHERE site = %(site)s AND boost_due IS NOT NULL AND site_id IS NOT NULL
        AND boost_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s)
    ORDER BY boost DESC, boost_due, title_id LIMIT %(size)s FOR UPDATE SKIP LOCKED
), unread AS (
    SELECT title_id, popularity FROM title_sites
    WHERE site = %(site)s AND last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL
        AND next_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s)
        AND (boost_due IS NULL OR boost_due > %(now)s)
    ORDER BY popularity DESC, title_id LIMIT %(size)s FOR UPDATE SKIP LOCKED
), stale AS (
    SELECT title_id, next_due FROM title_sites
    WHERE site = %(site)s AND (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL
        AND next_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s)
        AND (boost_due IS NULL OR boost_due > %(now)s)
    ORDER BY next_due, title_id LIMIT %(size)s FOR UPDATE SKIP LOCKED
), queues AS (
    SELECT 'boosted' AS queue, title_id, row_number() OVER (ORDER BY boost DESC, boost_due, title_id) AS nth FROM boosted
    UNION ALL SELECT 'unread', title_id, row_number() OVER (ORDER BY popularity DESC, title_id) FROM unread
    UNION ALL SELECT 'stale', title_id, row_number() OVER (ORDER BY next_due, title_id) FROM stale
), half AS MATERIALIZED (
    SELECT least(ceil(%(size)s / 2.0), (SELECT count(*) FROM boosted)) AS boosted
), shares AS MATERIALIZED (
    SELECT boosted, floor((%(size)s - boosted) / 3.0 + random()) AS stale FROM half
), chosen AS (
    SELECT q.*, CASE q.queue WHEN 'boosted' THEN q.nth <= s.boosted WHEN 'stale' THEN q.nth <= s.stale
        ELSE q.nth <= %(size)s - s.boosted - s.stale END AS is_first
    FROM queues q CROSS JOIN shares s
    ORDER BY is_first DESC, array_position('{unread,stale,boosted}', q.queue), q.nth LIMIT %(size)s
), taken AS (
    UPDATE title_sites s
    SET claimed_by = CASE WHEN s.claims < %(most)s THEN %(worker)s END,
        claimed_until = CASE WHEN s.claims < %(most)s THEN %(until)s::timestamptz END,
        claims = CASE WHEN s.claims < %(most)s THEN s.claims + 1 ELSE 0 END,
        state = CASE WHEN s.claims < %(most)s THEN s.state ELSE 'error' END,
        failures = CASE WHEN s.claims < %(most)s THEN s.failures ELSE s.failures + 1 END,
        next_due = CASE WHEN s.claims < %(most)s THEN s.next_due
            ELSE due_again('error', %(now)s, s.failures + 1, interval '14 days', s.next_due) END,
        boost_due = CASE WHEN s.claims < %(most)s THEN s.boost_due END
    FROM chosen c
    WHERE s.site = %(site)s AND s.title_id = c.title_id
    RETURNING s.*, c.queue, c.nth
)
SELECT * FROM taken ORDER BY array_position('{boosted,unread,stale}', queue), nth
