-- Stores the scores of the records in `incoming`, and their history.

-- Scores dated in the future came from a wrong clock: their entries are replaced by ones of now.
WITH untrue AS (
    DELETE FROM score_history h USING incoming w
    WHERE h.record_id = w.record_id AND NOT w.is_new
        AND h.since > greatest(w.scraped_at, now() + interval '10 minutes')
    RETURNING h.record_id, h.kind
)
DELETE FROM scores s USING untrue f WHERE s.record_id = f.record_id AND s.kind = f.kind;

WITH given AS (
    SELECT w.record_id, s.*
    FROM incoming w CROSS JOIN LATERAL jsonb_to_recordset(w.item -> 'scores') AS s (
        kind score_kind, value numeric, count integer, average numeric, reviews integer,
        liked integer, neutral integer, disliked integer, certified boolean, sentiment text,
        histogram integer[])
), before AS (
    SELECT s.record_id, s.kind, s.value, s.count, s.average
    FROM scores s JOIN incoming w USING (record_id)
    WHERE NOT w.is_new
), gone AS (
    DELETE FROM scores stored USING incoming w
    WHERE stored.record_id = w.record_id AND NOT w.is_new
        AND NOT EXISTS (
            SELECT FROM given g WHERE g.record_id = stored.record_id AND g.kind = stored.kind)
    RETURNING stored.record_id, stored.kind, w.scraped_at
), changed AS (
    INSERT INTO scores AS stored (
        record_id, kind, value, count, average, reviews, liked, neutral, disliked, certified,
        sentiment, histogram)
    SELECT * FROM given
    ON CONFLICT (record_id, kind) DO UPDATE
    SET value = excluded.value,
        count = excluded.count,
        average = excluded.average,
        reviews = excluded.reviews,
        liked = excluded.liked,
        neutral = excluded.neutral,
        disliked = excluded.disliked,
        certified = excluded.certified,
        sentiment = excluded.sentiment,
        histogram = excluded.histogram
    WHERE to_jsonb(stored) - 'normalised' <> to_jsonb(excluded) - 'normalised'
    RETURNING record_id, kind, value, count, average
)
INSERT INTO score_history AS stored (record_id, kind, since, value, count, average)
SELECT c.record_id, c.kind, w.scraped_at, c.value, c.count, c.average
FROM changed c JOIN incoming w USING (record_id) LEFT JOIN before b USING (record_id, kind)
WHERE (c.value, c.count, c.average) IS DISTINCT FROM (b.value, b.count, b.average)
UNION ALL
SELECT record_id, kind, scraped_at, NULL, NULL, NULL FROM gone
-- The same page again with other values: a newer version extracted it.
ON CONFLICT (record_id, kind, since) DO UPDATE
SET value = excluded.value, count = excluded.count, average = excluded.average;
