-- Candidate ids of titles, from the lists of a site: for each title those of its year first. An id
-- that is known to be another title's is left out, and one that was refused for the title. One row
-- is a title and a candidate id.
-- Parameters:
--   site    text
--   titles  bigint[]; with keys and years, the keys under which ids of a title are listed
--   keys    text[]
--   years   int[]; null where the title's year is unknown
--   since   timestamptz; older refusals don't count
SELECT named.title_id, g.site_id, g.source
FROM unnest(%(titles)s::bigint[], %(keys)s::text[], %(years)s::int[])
    AS named (title_id, key, year)
JOIN listed_ids g ON g.site = %(site)s AND g.key = named.key
WHERE NOT EXISTS (
        SELECT FROM title_sites o
        JOIN titles t ON t.title_id = o.title_id
        WHERE o.site = g.site
            AND o.site_id = g.site_id
            AND (t.imdb_id IS NOT NULL OR o.id_verified)
    )
    AND NOT EXISTS (
        SELECT FROM title_matches m
        WHERE m.title_id = named.title_id
            AND m.site = g.site
            AND m.site_id = g.site_id
            AND m.decision <> 'accepted'
            AND (m.by_hand OR m.decided_at > %(since)s)
    )
ORDER BY
    coalesce(
        abs(g.year - named.year),
        -- Without the list's year, the one that the id has counts, as in m/dune_2021.
        (
            SELECT min(abs(part::int - named.year))
            FROM regexp_split_to_table(g.site_id, '[-_]') AS part
            WHERE part ~ '^[0-9]{4}$'
        ),
        1
    ),
    g.site_id
