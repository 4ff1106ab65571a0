-- So many titles of made-up words, with what a crawl and a catalogue would have of them.
-- Arguments: titles (how many), words (24, with spaces).
SET synchronous_commit = off;
INSERT INTO titles (title_id, imdb_id, title, original_title, kind, year, popularity)
SELECT n, 'tt' || lpad(n::text, 7, '0'),
    CASE WHEN n %% 3 = 0 THEN 'The ' ELSE '' END
        || initcap(w[1 + n %% 24]) || ' '
        || initcap(w[1 + (n / 24) %% 24]) || ' '
        || initcap(w[1 + (n * 7 / 576) %% 24])
        || CASE WHEN n %% 11 = 0 THEN ' ' || n %% 90 ELSE '' END,
    NULL, 'movie', 1920 + n %% 105, round((random() ^ 4 * 98)::numeric, 1)
FROM generate_series(1, %(titles)s) n, (SELECT string_to_array(%(words)s, ' ') AS w) words;
INSERT INTO title_sites (title_id, site, site_id, popularity, state, last_success, next_due)
SELECT t.title_id, s.site, CASE WHEN s.site = 'imdb' OR t.title_id %% 2 = 0 THEN t.imdb_id END,
    t.popularity,
    CASE WHEN t.title_id %% 2 = 0 THEN 'ok' ELSE 'never' END::site_state,
    CASE WHEN t.title_id %% 2 = 0 THEN now() - random() * interval '80 days' END,
    CASE WHEN t.title_id %% 2 = 0 THEN now() + (random() - 0.2) * interval '80 days'
        ELSE 'epoch' END
FROM titles t CROSS JOIN sites s;
INSERT INTO records (record_id, title_id, site, site_id, url, title, kind, year, source, scraped_at,
    updated_at, match_keys)
SELECT title_id, title_id, 'imdb', imdb_id, 'https://www.imdb.com/title/' || imdb_id || '/', title,
    kind, year, 'page', now(), now(), '{}'
FROM titles WHERE title_id %% 2 = 0;
INSERT INTO scores (record_id, kind, value, count)
SELECT record_id, 'imdb', 1 + record_id %% 90 / 10.0, 1 + record_id %% 9999
FROM records;
INSERT INTO score_history (record_id, kind, since, value, count)
SELECT record_id, 'imdb', now() - day * interval '9 days', 1 + (record_id + day) %% 90 / 10.0, 100
FROM records, generate_series(1, 3) day WHERE record_id %% 10 = 0;
INSERT INTO misses
SELECT 'imdb', 'tt9' || n, 'https://www.imdb.com/',
    CASE n %% 3 WHEN 0 THEN 'failed' ELSE 'absent' END,
    'scores: there are none (no URL)', now() - random() * interval '20 days'
FROM generate_series(1, %(titles)s / 10) n;
INSERT INTO title_matches
SELECT n, 'metacritic', 'movie/m' || n,
    CASE n %% 5 WHEN 0 THEN 'review' ELSE 'accepted' END::match_decision, n %% 40 / 10.0,
    ARRAY['same title'], false, now()
FROM generate_series(1, %(titles)s / 10) n;
