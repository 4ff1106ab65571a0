-- Stores credits and offers of the records in `incoming`.
-- A person is looked up once; the lateral join with a LIMIT makes the planner use the index.
INSERT INTO incoming_credits
SELECT w.record_id, c.role, c.position, k.person_key, c.person_id, c.name, c.character,
    p.person_id, p.name
FROM incoming w
CROSS JOIN LATERAL jsonb_to_recordset(w.item -> 'credits')
    AS c (role credit_role, position integer, person_id text, name text, character text)
CROSS JOIN LATERAL coalesce('#' || c.person_id, '=' || c.name) AS k (person_key)
LEFT JOIN LATERAL (
    SELECT p.person_id, p.name FROM people p
    WHERE p.site = w.site AND p.person_key = k.person_key
    LIMIT 1
) p ON true;

INSERT INTO people AS stored (site, site_person_id, name, named_at)
SELECT DISTINCT ON (w.site, c.person_key) w.site, c.site_person_id, c.name, w.scraped_at
FROM incoming_credits c JOIN incoming w USING (record_id)
WHERE c.person_id IS NULL OR c.name <> coalesce(c.known_name, '')
ORDER BY w.site, c.person_key, c.name IS NULL, w.scraped_at DESC, c.role, c.position
ON CONFLICT (site, person_key) DO UPDATE SET name = excluded.name, named_at = excluded.named_at
WHERE stored.name IS NULL
    OR excluded.named_at > stored.named_at
    OR stored.named_at > now() + interval '10 minutes';

-- Changed credits are deleted and inserted: that is faster than ON CONFLICT, and under
-- `lock_titles` nobody else writes them.
DELETE FROM credits stored USING incoming w
WHERE stored.record_id = w.record_id AND NOT w.is_new AND NOT EXISTS (
    SELECT FROM incoming_credits c
    WHERE (c.record_id, c.role, c.position, c.person_id)
            = (stored.record_id, stored.role, stored.position, stored.person_id)
        AND c.name IS NOT DISTINCT FROM stored.name
        AND c.character IS NOT DISTINCT FROM stored.character);

INSERT INTO credits (record_id, role, position, person_id, name, character)
SELECT c.record_id, c.role, c.position,
    coalesce(c.person_id, (
        SELECT p.person_id FROM people p WHERE p.site = w.site AND p.person_key = c.person_key)),
    c.name, c.character
FROM incoming_credits c JOIN incoming w USING (record_id)
-- count(*), as the planner would answer EXISTS by reading all credits.
WHERE w.is_new OR (
    SELECT count(*) FROM credits s
    WHERE s.record_id = c.record_id AND s.role = c.role AND s.position = c.position) = 0;

DELETE FROM offers o USING incoming w
WHERE o.record_id = w.record_id AND NOT w.is_new AND NOT EXISTS (
    SELECT FROM jsonb_to_recordset(w.item -> 'offers') AS g (
        provider text, kind offer_kind, country text, quality text)
    WHERE (g.provider, g.kind, coalesce(g.country, ''), coalesce(g.quality, ''))
        = (o.provider, o.kind, coalesce(o.country, ''), coalesce(o.quality, '')));

INSERT INTO offers AS stored (
    record_id, provider, kind, country, quality, price, currency, url, source, seen_at, since)
SELECT w.record_id, g.*, coalesce(g.seen_at, w.scraped_at)
FROM incoming w CROSS JOIN LATERAL jsonb_to_recordset(w.item -> 'offers') AS g (
    provider text, kind offer_kind, country text, quality text, price numeric, currency text,
    url text, source text, seen_at timestamptz)
ON CONFLICT (record_id, provider, kind, coalesce(country, ''), coalesce(quality, '')) DO UPDATE
SET price = excluded.price,
    currency = excluded.currency,
    url = excluded.url,
    source = excluded.source,
    seen_at = excluded.seen_at,
    since = least(stored.since, excluded.since)
WHERE stored.since > excluded.since OR to_jsonb(stored) - 'since' <> to_jsonb(excluded) - 'since'
