-- Titles whose id on a site is to be looked for, never looked for and most popular first; locked, so that each is one
-- worker's. What was refused in the last days, or found to be no page, is not to be tried again.
-- site; now; size; since: the beginning of the days that are remembered; again: how long what no list names is put off.
SELECT s.title_id, s.claims,
    ARRAY(
        SELECT m.site_id FROM title_matches m
        WHERE m.title_id = s.title_id AND m.site = s.site AND (m.by_hand OR m.decided_at > %(since)s)
            AND m.decision <> 'accepted') AS refused
FROM title_sites s JOIN titles t USING (title_id)
WHERE s.site = %(site)s AND s.site_id IS NULL AND -- What was looked for before the site's sitemap was read is looked for once more.
    s.next_due <= greatest(%(now)s, (SELECT i.finished_at + %(again)s FROM imports i WHERE i.source = %(site)s || ' sitemap'))
    AND t.title IS NOT NULL
    AND t.kind IS DISTINCT FROM 'season'  -- the page of its series names them
    AND (s.claimed_until IS NULL OR s.claimed_until <= %(now)s)
ORDER BY s.next_due, s.popularity DESC, s.title_id
LIMIT %(size)s
FOR UPDATE OF s SKIP LOCKED
