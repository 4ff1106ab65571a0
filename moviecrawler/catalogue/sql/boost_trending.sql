-- Boosts what stands on a list of what is popular, by its place: the first one's weight is 1, the last one's almost 0.
-- What is popular stays so for some days: pages that were fetched within `every` wait until it is over. Those that a person
-- boosted don't. site; rows: JSON array of {n, site_id}; weight: their number; now; every: lanes.BOOST_EVERY.
UPDATE title_sites o SET boost_due = least(o.boost_due, o.last_success + %(every)s), boost = 0.000001
FROM jsonb_to_recordset(%(rows)s) AS r (site_id text)
JOIN title_sites s ON s.site = %(site)s AND s.site_id = r.site_id
WHERE o.title_id = s.title_id AND o.boost = 0 AND o.last_success > %(now)s::timestamptz - %(every)s;

SELECT boost_title_ids(array_agg(s.title_id), (1 - r.n::real / %(weight)s)::real, %(now)s)
FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text)
JOIN title_sites s ON s.site = %(site)s AND s.site_id = r.site_id
GROUP BY r.n
