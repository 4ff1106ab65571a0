-- The records that have a key which is asked for; a key that very many records have says nothing about them.
-- askers, sites, keys: arrays of equal length, the ids and sites of records and the hashes that they ask for;
-- unmatched: only records whose title is not on the asker's site yet; most: records that one key may lead to.
SELECT DISTINCT asked.asker, found.title_id, found.title, found.original_title
FROM unnest(%(askers)s::bigint[], %(sites)s::site[], %(keys)s::bigint[]) AS asked (asker, site, key)
CROSS JOIN LATERAL (
    SELECT first.*, count(*) OVER () AS number
    FROM (
        SELECT r.title_id, r.title, r.original_title
        FROM records r
        WHERE r.match_keys @> ARRAY[asked.key]
            -- Counted, as EXISTS would be answered by reading all records of the site.
            AND (NOT %(unmatched)s
                OR (SELECT count(*) FROM records o WHERE o.title_id = r.title_id AND o.site = asked.site) = 0)
        LIMIT %(most)s + 1
    ) first
) found
WHERE found.number <= %(most)s
