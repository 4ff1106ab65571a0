-- Selects titles of a site that are due and whose id there is known, in the order in which to fetch
-- them. Boosted titles get at most half; of the rest, unread titles (the most popular first) get
-- two thirds and stale ones (the longest due first) one third. If one queue has too few, the others
-- get more. The first of the rest is chosen at random, so that these shares hold for small numbers
-- too. The conditions repeat those of the indexes, so that Postgres uses these.
-- Parameters: site; size; now; open (titles that are left out); chance (from 0 to 1).
WITH boosted AS (
    SELECT title_id, boost, boost_due FROM title_sites
    WHERE site = %(site)s AND boost_due IS NOT NULL AND site_id IS NOT NULL
        AND boost_due <= %(now)s AND title_id <> ALL (%(open)s::bigint[])
    ORDER BY boost DESC, boost_due, title_id LIMIT %(size)s
), unread AS (
    SELECT title_id, popularity FROM title_sites
    WHERE site = %(site)s AND last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL
        AND next_due <= %(now)s AND title_id <> ALL (%(open)s::bigint[])
        AND (boost_due IS NULL OR boost_due > %(now)s)
    ORDER BY popularity DESC, title_id LIMIT %(size)s
), stale AS (
    SELECT title_id, next_due FROM title_sites
    WHERE site = %(site)s AND (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL
        AND next_due <= %(now)s AND title_id <> ALL (%(open)s::bigint[])
        AND (boost_due IS NULL OR boost_due > %(now)s)
    ORDER BY next_due, title_id LIMIT %(size)s
), rest AS (
    SELECT 'unread' AS queue, title_id, row_number() OVER () - %(chance)s AS priority FROM unread
    UNION ALL SELECT 'stale', title_id, 2 * (row_number() OVER () - 1 + %(chance)s) FROM stale
), chosen AS (
    SELECT 'boosted' AS queue, title_id, row_number() OVER () AS nth FROM boosted
    UNION ALL SELECT queue, title_id, row_number() OVER (ORDER BY priority) FROM rest
    ORDER BY nth, queue LIMIT %(size)s
)
SELECT s.*, c.queue
FROM chosen c JOIN title_sites s ON s.site = %(site)s AND s.title_id = c.title_id
ORDER BY c.queue <> 'boosted', c.nth
