-- Whether a title of a site is due that nobody has claimed. The conditions name those of the indexes word by word. site; now.
SELECT EXISTS (SELECT FROM title_sites WHERE site = %(site)s AND boost_due IS NOT NULL AND site_id IS NOT NULL
        AND boost_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s))
    OR EXISTS (SELECT FROM title_sites WHERE site = %(site)s AND last_success IS NULL AND state <> 'absent' AND site_id IS NOT NULL
        AND next_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s))
    OR EXISTS (SELECT FROM title_sites WHERE site = %(site)s AND (last_success IS NOT NULL OR state = 'absent') AND site_id IS NOT NULL
        AND next_due <= %(now)s AND (claimed_until IS NULL OR claimed_until <= %(now)s))
