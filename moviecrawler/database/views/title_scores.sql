-- Each score of a title once, of the kinds that have columns in the other views. A kind's own site
-- goes before others that show it too (IMDb's Metascore is an older one), then authority counts.
CREATE VIEW title_scores AS
SELECT title_id, kind, value, count, normalised, site, scraped_at
FROM (
    SELECT r.title_id, s.kind, s.value, s.count,
        s.value * 100.0 / k.highest AS normalised,  -- 0 to 100
        r.site, r.scraped_at,
        row_number() OVER (
            PARTITION BY r.title_id, s.kind ORDER BY r.site <> k.site, o.authority
        ) AS nth
    FROM records r
    JOIN sites o ON o.site = r.site
    JOIN scores s ON s.record_id = r.record_id
    JOIN score_kinds k ON k.kind = s.kind
    WHERE k.shown IS NOT NULL AND r.title_id IS NOT NULL
) ranked
WHERE nth = 1
