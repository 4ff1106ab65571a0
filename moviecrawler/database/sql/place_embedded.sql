-- Gives the records of the embedded database to their titles. The id of a title is that of its
-- first record. `placed` (record_id, title_id, newer_id) has the records that were compared,
-- `matched` (title_id, matched_by) the titles that have several. Every other record is a title of
-- its own.
INSERT OR IGNORE INTO placed
SELECT record_id, record_id, NULL
FROM records
WHERE title_id IS NOT record_id AND kind NOT IN ('season', 'episode');

UPDATE records
SET title_id = p.title_id, newer_id = p.newer_id
FROM placed p
WHERE p.record_id = records.record_id
    AND (p.title_id IS NOT records.title_id OR p.newer_id IS NOT records.newer_id);

DELETE FROM titles WHERE title_id NOT IN (
    SELECT title_id FROM records WHERE title_id IS NOT NULL);

INSERT INTO titles AS known (
    title_id, matched_by, imdb_id, title, original_title, kind, year, runtime_minutes)
SELECT r.record_id, coalesce(m.matched_by, '[]'), i.site_id, r.title, r.original_title, r.kind,
    r.year, r.runtime_minutes
FROM records r
LEFT JOIN matched m ON m.title_id = r.record_id
LEFT JOIN records i ON i.title_id = r.record_id AND i.site = 'imdb'
WHERE r.title_id = r.record_id AND r.kind NOT IN ('season', 'episode')
ON CONFLICT (title_id) DO UPDATE SET
    matched_by = excluded.matched_by,
    imdb_id = excluded.imdb_id,
    title = excluded.title,
    original_title = excluded.original_title,
    kind = excluded.kind,
    year = excluded.year,
    runtime_minutes = excluded.runtime_minutes
WHERE (known.matched_by, known.title, known.kind)
        <> (excluded.matched_by, excluded.title, excluded.kind)
    OR known.imdb_id IS NOT excluded.imdb_id
    OR known.original_title IS NOT excluded.original_title
    OR known.year IS NOT excluded.year
    OR known.runtime_minutes IS NOT excluded.runtime_minutes;

-- Seasons and episodes are titles of their own, which follow their series.
UPDATE titles
SET kind = r.kind, season = r.season, episode = r.episode, series_title_id = (
    SELECT coalesce(s.title_id, newer.title_id)
    FROM records s
    LEFT JOIN records newer ON newer.record_id = s.newer_id
    WHERE s.site = r.site AND s.site_id = r.series_id)
FROM records r
WHERE r.title_id = titles.title_id AND r.kind IN ('season', 'episode');

DROP TABLE placed;
DROP TABLE matched;
