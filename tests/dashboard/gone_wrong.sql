-- What an operator has to look at, and a title with all that there may be of one.
-- Arguments: hostile (a text that a site could send), imdb_id.
INSERT INTO misses VALUES
    ('metacritic', 'movie/odd', 'https://www.metacritic.com/movie/odd/', 'failed',
     'scores: gone (https://www.metacritic.com/movie/odd/)', now());
INSERT INTO titles (title_id, imdb_id, title, original_title, kind, year, popularity) VALUES
    (900001, %(imdb_id)s, %(hostile)s, 'Amélie la nuit', 'movie', 2001, 99),
    (900002, 'tt99990002', 'Another One', NULL, 'movie', 2002, 1);
INSERT INTO title_sites (title_id, site, site_id, next_due)
SELECT t, s.site, CASE s.site WHEN 'imdb' THEN (SELECT imdb_id FROM titles WHERE title_id = t) END,
    now() + interval '9 days'
FROM unnest(ARRAY[900001, 900002]) t, sites s;
INSERT INTO records (record_id, title_id, site, site_id, url, title, kind, year, source, scraped_at,
    updated_at, match_keys, keywords, interests, plot, taglines, consensus, poster_width,
    poster_height, external_ids)
VALUES (900001, 900001, 'imdb', %(imdb_id)s, 'javascript:alert(4)', %(hostile)s, 'movie', 2001,
    'page', now(), now(), '{}', jsonb_build_array(%(hostile)s::text, 'lighthouse'),
    jsonb_build_array(%(hostile)s::text), %(hostile)s, jsonb_build_array(%(hostile)s::text),
    %(hostile)s, 1000, 1500, jsonb_build_object('ems', %(hostile)s::text));
INSERT INTO related (record_id, position, relation, related_id, title)
VALUES (900001, 1, 'similar', 'tt9', %(hostile)s);
INSERT INTO awards (record_id, position, wins, nominations) VALUES (900001, 1, 2, 3);
INSERT INTO offers (
    record_id, position, provider, kind, country, quality, price, currency, url, source, since)
VALUES
    (900001, 1, %(hostile)s, 'buy', NULL, NULL, NULL, NULL, 'javascript:alert(5)', NULL, now()),
    (900001, 2, 'streamer', 'rent', 'US', 'HD', 3.99, 'USD', NULL, 'JustWatch', now()),
    (900001, 3, 'Streamer', 'subscription', NULL, NULL, NULL, NULL, 'https://streamer.example/1',
     NULL, now());
INSERT INTO scores (record_id, kind, value, average) VALUES (900001, 'tomatometer_top', 88, 7.5);
INSERT INTO scores (record_id, kind, value, count) VALUES
    (900001, 'imdb', 8.3, 4321),
    (900001, 'metascore', 70, 12);
INSERT INTO score_history (record_id, kind, since, value, count) VALUES
    (900001, 'imdb', now() - interval '40 days', 8.1, 4000),
    (900001, 'imdb', now() - interval '9 days', 8.3, 4321),
    (900001, 'metascore', now() - interval '20 days', 72, 11),
    (900001, 'metascore', now() - interval '9 days', 70, 12);
UPDATE score_history SET average = 71.6 WHERE kind = 'metascore' AND value = 72;
INSERT INTO people (site, person_key, person_id, name, named_at)
VALUES ('imdb', 'nm1', 'nm1', 'An Actor', now());
INSERT INTO credits (record_id, role, position, person_id, name, character)
VALUES (900001, 'cast', 1, 'nm1', 'An Actor', %(hostile)s);
INSERT INTO records (
    record_id, title_id, site, site_id, url, title, kind, source, scraped_at, updated_at,
    match_keys)
VALUES
    (900002, 900002, 'imdb', 'tt99990002', '', 'Another One', 'movie', 'page', now(), now(), '{}'),
    (900003, 900002, 'metacritic', 'movie/another-one', '', 'Another One', 'movie', 'page',
     now() - interval '9 days', now(), '{}');
INSERT INTO credits (record_id, role, position, name) VALUES
    (900002, 'cast', 1, 'A Stranger'),
    (900003, 'cast', 1, 'A Double');
INSERT INTO title_matches
SELECT 900002, 'metacritic', site_id, 'review', 1.5, ARRAY['same title', %(hostile)s], false, now()
FROM unnest(ARRAY['movie/one', 'movie/another']) site_id;
-- More than one page of a list has room for.
INSERT INTO titles (title_id, title, kind, year, popularity)
SELECT 900100 + n, format('Ordinary %%s', n), 'movie', 1990, 0
FROM generate_series(1, 60) n;
