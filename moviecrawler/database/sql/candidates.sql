-- The titles of records that have one of the keys of a search; null for one that finds too many.
-- asked: JSON array of {asker, keys}: the id of the asking record and the hashes that it searches;
-- most: records that a search may find.
SELECT DISTINCT asked.asker, CASE WHEN found.number <= %(most)s THEN found.title_id END
FROM jsonb_to_recordset(%(asked)s) AS asked (asker bigint, keys bigint[])
CROSS JOIN LATERAL (
    SELECT first.*, count(*) OVER () AS number
    FROM (
        SELECT coalesce(r.title_id, newer.title_id) AS title_id
        FROM records r
        LEFT JOIN records newer ON newer.record_id = r.newer_id
        WHERE r.match_keys && asked.keys
        LIMIT %(most)s + 1
    ) first
) found
