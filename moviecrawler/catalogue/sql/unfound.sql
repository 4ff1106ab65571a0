-- Titles whose id on a site is to be looked for, those that were never looked for and the most popular first; locked, so that each is one
-- worker's. `refused`: ids that are not to be tried again. site; now; size; since: the beginning of the days that are remembered; again: how long
-- what no list names is put off. What was looked for before the site's sitemap was read is looked for once more.
SELECT s.title_id, s.claims, ARRAY(
    SELECT m.site_id FROM title_matches m WHERE m.title_id = s.title_id AND m.site = s.site AND m.decision <> 'accepted'
        AND (m.by_hand OR m.decided_at > %(since)s)) AS refused
FROM title_sites s JOIN titles t USING (title_id)
WHERE s.site = %(site)s AND s.site_id IS NULL AND t.title IS NOT NULL
    AND s.next_due <= greatest(%(now)s, (SELECT i.finished_at + %(again)s FROM imports i WHERE i.source = %(site)s || ' sitemap'))
    AND (s.claimed_until IS NULL OR s.claimed_until <= %(now)s)
ORDER BY s.next_due, s.popularity DESC, s.title_id LIMIT %(size)s FOR UPDATE OF s SKIP LOCKED
