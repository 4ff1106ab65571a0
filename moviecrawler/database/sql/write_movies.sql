-- Stores what stands in `incoming`, each title there once. Unchanged rows are not touched.
-- What was stored with a time from the future, by a machine whose clock was wrong, gives way; see moviecrawler.clock.FUTURE.
-- margin: seconds by which a scrape must be newer than the stored one to take its place.
ANALYZE incoming;

INSERT INTO titles (title_id) SELECT title_id FROM incoming ON CONFLICT DO NOTHING;

WITH upserted AS (
    INSERT INTO records AS stored (record_id, title_id, match_keys, site, site_id, url, imdb_id, title, original_title,
        kind, title_type, year, end_year, release_date, runtime_minutes, countries, languages, certificate, plot,
        poster_url, imdb_top250_rank, imdb_top250_tv_rank, popularity_rank, series_id, series_title, season, episode,
        list_name, list_rank, list_computed, source, silent, scraped_at, "fetch", other_titles)
    SELECT i.record_id, i.title_id, i.match_keys, m.site, m.site_id, m.url, m.imdb_id, m.title, m.original_title,
        m.kind, m.title_type, m.year, m.end_year, m.release_date, m.runtime_minutes, m.countries, m.languages,
        m.certificate, m.plot, m.poster_url, m.imdb_top250_rank, m.imdb_top250_tv_rank, m.popularity_rank, m.series_id,
        m.series_title, m.season, m.episode, m.list_name, m.list_rank, m.list_computed, m.source,
        m.silent, m.scraped_at, m."fetch", coalesce(m.other_titles, '[]')
    FROM incoming i CROSS JOIN LATERAL jsonb_populate_record(NULL::records, i.item) m
    ON CONFLICT (site, site_id) DO UPDATE SET
        match_keys = excluded.match_keys, url = excluded.url, imdb_id = excluded.imdb_id, title = excluded.title,
        original_title = excluded.original_title, kind = excluded.kind, title_type = excluded.title_type,
        year = excluded.year, end_year = excluded.end_year, release_date = excluded.release_date,
        runtime_minutes = excluded.runtime_minutes, countries = excluded.countries, languages = excluded.languages,
        certificate = excluded.certificate, plot = excluded.plot, poster_url = excluded.poster_url,
        imdb_top250_rank = excluded.imdb_top250_rank, imdb_top250_tv_rank = excluded.imdb_top250_tv_rank,
        popularity_rank = excluded.popularity_rank, series_id = excluded.series_id,
        series_title = excluded.series_title, season = excluded.season, episode = excluded.episode,
        list_name = excluded.list_name, list_rank = excluded.list_rank, list_computed = excluded.list_computed,
        source = excluded.source, silent = excluded.silent, scraped_at = excluded.scraped_at, "fetch" = excluded."fetch",
        other_titles = excluded.other_titles
    -- As in catalogue.merging.supersedes.
    WHERE excluded.scraped_at = stored.scraped_at
        OR stored.scraped_at > now() + interval '10 minutes'
        OR excluded.scraped_at >= stored.scraped_at
            + CASE WHEN excluded.source > stored.source THEN 0 ELSE %(margin)s END * interval '1 second'
    RETURNING record_id, xmax = 0 AS is_new, site, scraped_at
)
INSERT INTO written
SELECT u.record_id, u.is_new, u.site, u.scraped_at, i.item FROM upserted u JOIN incoming i USING (record_id);
ANALYZE written;

-- Scores from the future are written anew, so that they are in the history from now on.
WITH untrue AS (
    DELETE FROM score_history h USING written w
    WHERE h.record_id = w.record_id AND h.since > greatest(w.scraped_at, now() + interval '10 minutes')
    RETURNING h.record_id, h.kind
)
DELETE FROM scores s USING untrue f WHERE s.record_id = f.record_id AND s.kind = f.kind;

WITH given AS (
    SELECT w.record_id, w.scraped_at, s.kind, s.value, s.count
    FROM written w CROSS JOIN LATERAL jsonb_to_recordset(w.item -> 'scores')
        AS s (kind score_kind, value numeric, count integer)
), gone AS (
    DELETE FROM scores stored USING written w
    WHERE stored.record_id = w.record_id
        AND NOT EXISTS (SELECT FROM given g WHERE g.record_id = stored.record_id AND g.kind = stored.kind)
    RETURNING stored.record_id, stored.kind, w.scraped_at
), changed AS (
    INSERT INTO scores AS stored (record_id, kind, value, count) SELECT record_id, kind, value, count FROM given
    ON CONFLICT (record_id, kind) DO UPDATE SET value = excluded.value, count = excluded.count
    WHERE (stored.value, stored.count) IS DISTINCT FROM (excluded.value, excluded.count)
    RETURNING record_id, kind, value, count
)
INSERT INTO score_history AS stored (record_id, kind, since, value, count)
SELECT c.record_id, c.kind, w.scraped_at, c.value, c.count FROM changed c JOIN written w USING (record_id)
UNION ALL
SELECT record_id, kind, scraped_at, NULL, NULL FROM gone
-- The same scrape again, with other values: read anew by a better reader.
ON CONFLICT (record_id, kind, since) DO UPDATE SET value = excluded.value, count = excluded.count;

WITH given AS (
    SELECT w.record_id, a.kind, a.value, a.currency
    FROM written w CROSS JOIN LATERAL jsonb_to_recordset(w.item -> 'amounts')
        AS a (kind amount_kind, value bigint, currency text)
), gone AS (
    DELETE FROM amounts stored USING written w
    WHERE stored.record_id = w.record_id
        AND NOT EXISTS (SELECT FROM given g WHERE g.record_id = stored.record_id AND g.kind = stored.kind)
)
INSERT INTO amounts AS stored (record_id, kind, value, currency) SELECT record_id, kind, value, currency FROM given
ON CONFLICT (record_id, kind) DO UPDATE SET value = excluded.value, currency = excluded.currency
WHERE (stored.value, stored.currency) IS DISTINCT FROM (excluded.value, excluded.currency);

INSERT INTO genres (name)
SELECT DISTINCT n.name FROM written w CROSS JOIN LATERAL jsonb_array_elements_text(w.item -> 'genres') AS n (name)
WHERE NOT EXISTS (SELECT FROM genres g WHERE g.name = n.name);

WITH given AS (
    SELECT w.record_id, n.position, g.genre_id
    FROM written w
    CROSS JOIN LATERAL jsonb_array_elements_text(w.item -> 'genres') WITH ORDINALITY AS n (name, position)
    JOIN genres g USING (name)
), gone AS (
    DELETE FROM record_genres stored USING written w
    WHERE stored.record_id = w.record_id
        AND NOT EXISTS (SELECT FROM given g WHERE g.record_id = stored.record_id AND g.position = stored.position)
)
INSERT INTO record_genres AS stored (record_id, position, genre_id) SELECT record_id, position, genre_id FROM given
ON CONFLICT (record_id, position) DO UPDATE SET genre_id = excluded.genre_id
WHERE stored.genre_id <> excluded.genre_id;

INSERT INTO incoming_credits
SELECT w.record_id, c.role, c.position, w.site, coalesce('#' || c.person_id, '=' || c.name), c.person_id, c.name,
    w.scraped_at, c.character
FROM written w CROSS JOIN LATERAL jsonb_to_recordset(w.item -> 'credits')
    AS c (role credit_role, position integer, person_id text, name text, character text);
ANALYZE incoming_credits (record_id, site, person_key);

INSERT INTO people AS stored (site, site_person_id, name, named_at)
SELECT DISTINCT ON (c.site, c.person_key) c.site, c.site_person_id, c.name, c.named_at
FROM incoming_credits c
WHERE NOT EXISTS (
    SELECT FROM people p
    WHERE p.site = c.site AND p.person_key = c.person_key AND (p.name = c.name OR c.name IS NULL))
ORDER BY c.site, c.person_key, c.name IS NULL, c.named_at DESC, c.role, c.position
ON CONFLICT (site, person_key) DO UPDATE SET name = excluded.name, named_at = excluded.named_at
WHERE stored.name IS NULL OR excluded.named_at > stored.named_at OR stored.named_at > now() + interval '10 minutes';

-- What has changed is deleted and inserted: that is faster than ON CONFLICT, and nobody else writes these rows meanwhile.
DELETE FROM credits stored USING written w
WHERE stored.record_id = w.record_id AND NOT w.is_new AND NOT EXISTS (
    SELECT FROM incoming_credits c JOIN people p USING (site, person_key)
    WHERE c.record_id = stored.record_id AND c.role = stored.role AND c.position = stored.position
        AND p.person_id = stored.person_id AND c.name IS NOT DISTINCT FROM stored.name AND c.character IS NOT DISTINCT FROM stored.character);

INSERT INTO credits (record_id, role, position, person_id, name, character)
SELECT c.record_id, c.role, c.position, p.person_id, c.name, c.character
FROM incoming_credits c JOIN people p USING (site, person_key)
WHERE NOT EXISTS (
    SELECT FROM credits s
    WHERE s.record_id = c.record_id AND s.role = c.role AND s.position = c.position
        AND s.person_id = p.person_id AND s.name IS NOT DISTINCT FROM c.name AND s.character IS NOT DISTINCT FROM c.character);

DELETE FROM misses m USING incoming i
WHERE i.was_read AND m.site = (i.item ->> 'site')::site AND m.site_id = i.item ->> 'site_id'
    AND (m.checked_at <= (i.item ->> 'scraped_at')::timestamptz OR m.checked_at > now() + interval '10 minutes');

SELECT record_id FROM written
