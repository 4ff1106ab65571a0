-- How many titles of each site were read, by how many hours ago that was. Arguments: now, hours.
SELECT site, floor(extract(epoch FROM %(now)s - scraped_at) / 3600)::int AS ago, count(*)
FROM records
WHERE scraped_at > %(now)s - make_interval(hours => %(hours)s)
    AND scraped_at <= %(now)s
    AND source <> 'list'
GROUP BY 1, 2
