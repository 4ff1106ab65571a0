-- Stores the people of all records of the embedded database with their newest names. Parameter: the
-- time after which a name came from a wrong clock.
INSERT INTO people AS known (site, person_key, person_id, name, named_at)
SELECT site, person_key, person_id, name, substr(newest, 2)
FROM (
    SELECT r.site,
        coalesce(c.person_id, c.name) AS person_key,
        c.person_id,
        c.name,
        -- The other columns are those of the row that has the maximum: the newest that has a name.
        max((c.name IS NOT NULL) || r.scraped_at) AS newest
    FROM credits c
    JOIN records r ON r.record_id = c.record_id
    -- Sites are the same in most comparisons: they come last.
    GROUP BY person_key, r.site
) named
WHERE true
ON CONFLICT (site, person_key) DO UPDATE SET
    person_id = excluded.person_id,
    name = excluded.name,
    named_at = excluded.named_at
WHERE excluded.name IS NOT NULL
    AND (known.name IS NULL OR known.name <> excluded.name)
    AND (excluded.named_at >= known.named_at OR known.named_at > ?)
