-- The first titles of each queue of a site, in the orders of catalogue.lanes: `boosted_order`, `unread_order`, `stale_order`.
-- site; now; farthest: lanes.FARTHEST_DUE; size: titles of each. The conditions name those of the indexes word by word.
(SELECT 'boosted' AS queue, title_id, popularity, next_due FROM title_sites
 WHERE site = %(site)s AND boost_due IS NOT NULL AND site_id IS NOT NULL
    AND (boost_due <= %(now)s OR boost_due > %(now)s + %(farthest)s) AND (claimed_until IS NULL OR claimed_until <= %(now)s)
 ORDER BY boost DESC, boost_due, title_id LIMIT %(size)s)
UNION ALL
(SELECT 'unread', title_id, popularity, next_due FROM title_sites
 WHERE site = %(site)s AND last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL
    AND (next_due <= %(now)s OR next_due > %(now)s + %(farthest)s)
    AND (claimed_until IS NULL OR claimed_until <= %(now)s)
 ORDER BY popularity DESC, title_id LIMIT %(size)s)
UNION ALL
(SELECT 'stale', title_id, popularity, next_due FROM title_sites
 WHERE site = %(site)s AND (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL
    AND next_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s)
 ORDER BY next_due, title_id LIMIT %(size)s)
UNION ALL
(SELECT 'stale', title_id, popularity, %(now)s FROM title_sites
 WHERE site = %(site)s AND (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL
    AND next_due > %(now)s + %(farthest)s AND (claimed_until IS NULL OR claimed_until <= %(now)s)
 ORDER BY title_sites.next_due, title_id LIMIT %(size)s)
