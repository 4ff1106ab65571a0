-- Selects titles whose id on a site is unknown and due to be searched: first those that
-- were never searched, the most popular first. Titles that were put off are due again once the
-- site's sitemap was read.
-- Parameters: site; now; size; open (titles that are left out);
-- again (how long a title that no list names is put off).
SELECT s.title_id
FROM title_sites s JOIN titles t USING (title_id)
WHERE s.site = %(site)s AND s.site_id IS NULL AND t.title IS NOT NULL
    AND s.next_due <= greatest(
        %(now)s,
        (SELECT i.finished_at + %(again)s FROM imports i WHERE i.source = %(site)s || ' sitemap'))
    AND s.title_id <> ALL (%(open)s::bigint[])
ORDER BY s.next_due, s.popularity DESC, s.title_id LIMIT %(size)s
