-- Of how many titles a site was asked since a time, and gave the page or said that it has none. site; since.
SELECT count(*) FROM title_sites s
WHERE s.site = %(site)s AND (s.last_success >= %(since)s OR s.state = 'absent' AND s.next_due >= %(since)s + interval '90 days')
    -- Not by a page of its own: IMDb's datasets have told of it, or a season's series.
    AND NOT EXISTS (SELECT FROM records r WHERE r.site = s.site AND r.site_id = s.site_id
        AND (r.source = 'dataset' OR r.source = 'list' AND r.kind = 'season'))
