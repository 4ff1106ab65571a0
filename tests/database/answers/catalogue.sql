-- What the catalogue has of the titles in titles.sql, and of others; in Postgres alone. Titles from
-- 201 on are due on Rotten Tomatoes, and those from 231 on are to be found on Metacritic.
SET TIME ZONE 'UTC';
INSERT INTO titles (title_id, imdb_id, title, kind, year, popularity)
SELECT n, 'tt0000' || n, 'Title ' || n, 'movie', 2020, n % 100
FROM generate_series(201, 239) n;
ALTER TABLE titles ALTER title_id RESTART WITH 1001;
UPDATE titles SET title = NULL WHERE title_id = 235;
UPDATE titles SET votes = 1234 WHERE title_id IN (1, 201);

INSERT INTO title_sites (title_id, site, state, site_id, id_source, id_verified, popularity,
    last_success, next_due, boost, boost_due) VALUES
    (1, 'imdb', 'ok', 'tt0111161', 'given', true, 60, '2026-02-03', '2026-05-04', 0, NULL),
    (1, 'metacritic', 'ok', 'movie/the-lamp', 'joined', true, 60, '2026-02-01', '2026-02-11', 0,
        NULL),
    (2, 'metacritic', 'never', 'movie/amelie', 'wikidata', false, 50, NULL, 'epoch', 0, NULL),
    (3, 'rottentomatoes', 'ok', 'm/lamp', 'joined', true, 0, '2026-03-01 06:00', '2026-04-01', 0,
        NULL),
    (10, 'metacritic', 'ok', 'tv/salt-harbour', 'page', true, 70, '2026-02-01', '2026-03-04', 0,
        NULL),
    (3, 'imdb', 'never', NULL, NULL, false, 0, NULL, 'epoch', 0, NULL),
    (5, 'imdb', 'ok', 'tt0000005', 'given', true, 80, '2026-02-20', '2026-02-10', 0, NULL),
    -- Boosted.
    (201, 'rottentomatoes', 'never', 'm/201', 'list', false, 99, NULL, 'epoch', 1, '2026-02-10'),
    (202, 'rottentomatoes', 'never', 'm/202', 'list', false, 99, NULL, 'epoch', 2, '2026-02-20'),
    (204, 'rottentomatoes', 'never', 'm/204', 'list', false, 99, NULL, 'epoch', 2, '2026-02-15'),
    (203, 'rottentomatoes', 'never', 'm/203', 'list', false, 99, NULL, 'epoch', 2, '2026-02-15'),
    (205, 'rottentomatoes', 'never', 'm/205', 'list', false, 10, NULL, 'epoch', 9, '2026-03-02'),
    (206, 'rottentomatoes', 'never', NULL, NULL, false, 99, NULL, '2026-02-01', 9, '2026-02-01'),
    (207, 'rottentomatoes', 'never', 'm/207', 'list', false, 99, NULL, 'epoch', 9, '2026-02-01'),
    (227, 'rottentomatoes', 'ok', 'm/227', 'list', false, 0, '2026-01-01', '2026-02-01', 0.5,
        '2026-02-25'),
    -- Never read.
    (213, 'rottentomatoes', 'never', 'm/213', 'list', false, 30, NULL, 'epoch', 0, NULL),
    (211, 'rottentomatoes', 'error', 'm/211', 'list', false, 30, NULL, '2026-02-01', 0, NULL),
    (212, 'rottentomatoes', 'never', 'm/212', 'list', false, 40, NULL, 'epoch', 0, NULL),
    (215, 'rottentomatoes', 'never', NULL, NULL, false, 98, NULL, 'epoch', 0, NULL),
    (216, 'rottentomatoes', 'blocked', 'm/216', 'list', false, 98, NULL, '2026-03-05', 0, NULL),
    (217, 'rottentomatoes', 'never', 'm/217', 'list', false, 98, NULL, 'epoch', 0, NULL),
    -- Stale.
    (223, 'rottentomatoes', 'ok', 'm/223', 'list', false, 0, '2026-01-01', '2026-02-05', 0, NULL),
    (221, 'rottentomatoes', 'ok', 'm/221', 'list', false, 0, '2026-01-01', '2026-02-05', 0, NULL),
    (222, 'rottentomatoes', 'error', 'm/222', 'list', false, 0, '2026-01-01', '2026-02-03', 0,
        NULL),
    (214, 'rottentomatoes', 'absent', 'm/214', 'list', false, 97, NULL, '2026-02-04', 0, NULL),
    (224, 'rottentomatoes', 'ok', NULL, NULL, false, 0, '2026-01-01', '2026-02-01', 0, NULL),
    (225, 'rottentomatoes', 'ok', 'm/225', 'list', false, 0, '2026-01-10', '2026-03-11', 0, NULL),
    (226, 'rottentomatoes', 'ok', 'm/226', 'list', false, 0, '2026-01-01', '2026-02-01', 0, NULL),
    -- Elsewhere.
    (212, 'metacritic', 'never', 'movie/212', 'list', false, 96, NULL, 'epoch', 0, NULL),
    (203, 'metacritic', 'never', 'movie/203', 'list', false, 96, NULL, 'epoch', 8, '2026-02-01'),
    (222, 'metacritic', 'ok', 'movie/222', 'list', false, 96, '2026-01-01', '2026-02-01', 0, NULL),
    -- Not found yet.
    (231, 'metacritic', 'never', NULL, NULL, false, 10, NULL, 'epoch', 0, NULL),
    (233, 'metacritic', 'never', NULL, NULL, false, 20, NULL, 'epoch', 0, NULL),
    (232, 'metacritic', 'never', NULL, NULL, false, 20, NULL, 'epoch', 0, NULL),
    (234, 'metacritic', 'never', NULL, NULL, false, 90, NULL, '2026-02-01', 0, NULL),
    (235, 'metacritic', 'never', NULL, NULL, false, 99, NULL, 'epoch', 0, NULL),
    (236, 'metacritic', 'never', 'movie/236', 'sitemap', false, 99, NULL, 'epoch', 0, NULL),
    (237, 'metacritic', 'never', NULL, NULL, false, 99, NULL, 'epoch', 0, NULL),
    (238, 'metacritic', 'never', NULL, NULL, false, 99, NULL, '2026-03-05', 0, NULL),
    (239, 'metacritic', 'never', NULL, NULL, false, 99, NULL, '2026-03-10', 0, NULL);
INSERT INTO imports (source, version, rows_done, finished_at) VALUES
    ('rottentomatoes sitemap', '1', 10, '2026-03-08'),
    ('metacritic sitemap', '1', 10, '2026-02-27');
INSERT INTO misses (site, site_id, url, outcome, reason, checked_at) VALUES
    ('metacritic', 'movie/a', 'u', 'failed', 'r', '2026-03-01 01:00'),
    ('metacritic', 'movie/b', 'u', 'failed', 'r', '2026-02-28'),
    ('metacritic', 'movie/c', 'u', 'blocked', 'r', '2026-03-01 02:00'),
    ('metacritic', 'movie/d', 'u', 'disallowed', 'r', '2026-03-01 03:00'),
    ('metacritic', 'movie/e', 'u', 'absent', 'r', '2026-03-01 03:00'),
    ('imdb', 'tt0000009', 'u', 'absent', 'r', '2026-03-01 03:00'),
    ('metacritic', 'movie/the-lamp', 'u', 'failed', 'it is late', '2026-02-28'),
    ('rottentomatoes', 'movie/the-lamp', 'u', 'failed', 'another site', '2026-02-28');
INSERT INTO title_matches (title_id, site, site_id, decision, score, reasons, by_hand, decided_at)
VALUES
    (1, 'metacritic', 'movie/the-lamp', 'accepted', 3, '{}', false, '2026-02-01'),
    (2, 'metacritic', 'movie/lamp-refused', 'refused', 0, '{}', false, '2026-02-20'),
    (2, 'metacritic', 'movie/lamp-long-ago', 'refused', 0, '{}', false, '2025-01-01'),
    (2, 'metacritic', 'movie/lamp-by-hand', 'refused', 0, '{}', true, '2025-01-01'),
    (2, 'metacritic', 'movie/lamp-accepted', 'accepted', 3, '{}', false, '2026-02-20'),
    (2, 'metacritic', 'movie/lamp-in-review', 'review', 1, '{}', false, '2026-02-20'),
    (3, 'metacritic', 'movie/lamp-of-three', 'refused', 0, '{}', false, '2026-02-20'),
    (2, 'rottentomatoes', 'movie/lamp-elsewhere', 'refused', 0, '{}', false, '2026-02-20');
