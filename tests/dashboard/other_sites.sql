-- What two more sites have of the titles of many_titles.sql, with their scores.
INSERT INTO records (record_id, title_id, site, site_id, url, title, kind, year, source, scraped_at,
    updated_at, match_keys)
SELECT r.record_id + place * 100000, r.title_id, other.site,
    format('movie/%s', r.record_id), format('https://www.%s.com/movie/%s', other.site, r.record_id),
    r.title, r.kind, r.year, 'page', now(), now(), '{}'
FROM records r
CROSS JOIN (VALUES ('metacritic', 1), ('rottentomatoes', 2)) AS other (site, place)
WHERE r.record_id < 100000 AND r.record_id % (2 * (1 + other.place)) = 0;
INSERT INTO scores (record_id, kind, value, count)
SELECT r.record_id, s.kind, 30 + r.record_id * s.step % 70, 10 + r.record_id % 90
FROM records r
JOIN (VALUES ('metacritic', 'metascore', 7), ('rottentomatoes', 'tomatometer', 11),
    ('rottentomatoes', 'popcornmeter', 13)) AS s (site, kind, step) ON s.site = r.site
WHERE r.record_id > 100000 AND r.record_id < 900000;
UPDATE records
SET scraped_at = now() - mod(title_id, 23) ^ 1.3 * interval '20 min'
WHERE title_id < 900000;
