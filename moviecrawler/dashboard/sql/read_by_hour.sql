-- How many titles of each site were fetched in each of the last hours. One row is a site.
-- Parameters:
--   now    timestamptz
--   hours  integer
--   sites  text[]
SELECT named.site, array_agg(coalesce(fetched.titles, 0) ORDER BY hour.ago DESC) AS titles
FROM unnest(%(sites)s::text[]) AS named (site)
CROSS JOIN generate_series(0, %(hours)s - 1) AS hour (ago)
LEFT JOIN (
    SELECT
        r.site,
        floor(extract(epoch FROM %(now)s - r.scraped_at) / 3600)::int AS ago,
        count(*) AS titles
    FROM records r
    WHERE r.scraped_at > %(now)s - make_interval(hours => %(hours)s)
        AND r.source <> 'list'
    GROUP BY r.site, ago
) AS fetched ON fetched.site = named.site AND fetched.ago = hour.ago
GROUP BY named.site
