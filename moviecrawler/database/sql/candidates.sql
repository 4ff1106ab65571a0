-- The records that have one of the keys asked for at once, unless these are very many: then it says nothing about them.
-- asked: JSON array of {asker, site, keys}, the id and site of a record and the hashes that it asks for; unmatched: only
-- records whose title is not on the asker's site yet; most: records.
SELECT DISTINCT asked.asker, found.title_id, found.title, found.original_title
FROM jsonb_to_recordset(%(asked)s) AS asked (asker bigint, site site, keys bigint[])
CROSS JOIN LATERAL (
    SELECT first.*, count(*) OVER () AS number
    FROM (
        SELECT r.title_id, r.title, r.original_title
        FROM records r
        WHERE r.match_keys && asked.keys
            -- Counted, as EXISTS would be answered by reading all records of the site.
            AND (NOT %(unmatched)s
                OR (SELECT count(*) FROM records o WHERE o.title_id = r.title_id AND o.site = asked.site) = 0)
        LIMIT %(most)s + 1
    ) first
) found
WHERE found.number <= %(most)s
