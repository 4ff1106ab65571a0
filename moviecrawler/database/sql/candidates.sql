-- The titles of records that have one of the keys asked for at once, unless these are very many: then it says nothing about them.
-- asked: JSON array of {asker, keys}, the id of a record and the hashes that it asks for; most: records.
SELECT DISTINCT asked.asker, found.title_id
FROM jsonb_to_recordset(%(asked)s) AS asked (asker bigint, keys bigint[])
CROSS JOIN LATERAL (
    SELECT first.*, count(*) OVER () AS number
    FROM (SELECT r.title_id FROM records r WHERE r.match_keys && asked.keys LIMIT %(most)s + 1) first
) found
WHERE found.number <= %(most)s
