-- Stores misses, unless the title's page was read later.
-- misses: JSON array of items, each title once.
INSERT INTO misses AS stored (site, site_id, url, outcome, reason, checked_at)
SELECT m.site, m.site_id, m.url, m.outcome, m.reason, m.checked_at
FROM jsonb_populate_recordset(NULL::misses, %(misses)s) m
WHERE NOT EXISTS (
    SELECT FROM records r
    WHERE r.site = m.site AND r.site_id = m.site_id AND r.source <> 'list'
        AND r.scraped_at > m.checked_at
        AND r.scraped_at <= now() + interval '10 minutes')
ON CONFLICT (site, site_id) DO UPDATE SET
    url = excluded.url,
    outcome = excluded.outcome,
    reason = excluded.reason,
    checked_at = excluded.checked_at
WHERE excluded.checked_at >= stored.checked_at OR stored.checked_at > now() + interval '10 minutes'
