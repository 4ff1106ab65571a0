-- Loads `incoming` into the catalogue, without writing unchanged rows. Returns how many titles were
-- added and changed, how many ids are new, and how many rows name no title that is known.
-- Parameters: since (ids that were refused later are not accepted); source; version; rows_done.
SET LOCAL default_statistics_target = 10;  -- only the number of rows matters here
ANALYZE incoming;
-- A part is small beside the catalogue, so its titles are found by indexes; the planner would read
-- all of title_sites.
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
UPDATE incoming i SET imdb_id = t.imdb_id
FROM titles t WHERE i.imdb_id IS NULL AND t.tmdb_id = i.tmdb_id;
UPDATE incoming i SET imdb_id = t.imdb_id
FROM titles t WHERE i.imdb_id IS NULL AND t.tmdb_series_id = i.tmdb_series_id;

-- A row's values replace the known ones; of several rows of a title, the last with title and kind
-- counts. A popularity is replaced by one of the same or a higher source: votes, TMDB, a person.
CREATE TEMPORARY TABLE merged ON COMMIT DROP AS
SELECT t.title_id, m.*
FROM (
    SELECT DISTINCT ON (imdb_id) * FROM incoming WHERE imdb_id IS NOT NULL
    ORDER BY imdb_id, title IS NOT NULL AND kind IS NOT NULL DESC, n DESC
) i
LEFT JOIN titles t USING (imdb_id)
CROSS JOIN LATERAL (
    SELECT i.popularity IS NOT NULL
        AND coalesce(
            t.popularity_source::popularity_source <= i.popularity_source::popularity_source, true
        ) AS is_newer
) p
CROSS JOIN LATERAL (
    SELECT i.imdb_id,
        coalesce(i.tmdb_id, t.tmdb_id) AS tmdb_id,
        coalesce(i.tmdb_series_id, t.tmdb_series_id) AS tmdb_series_id,
        coalesce(i.title, t.title) AS title,
        coalesce(i.original_title, t.original_title) AS original_title,
        coalesce(i.kind, t.kind) AS kind,
        coalesce(i.year, t.year) AS year,
        -- A series that was resumed loses its last year.
        CASE
            WHEN i.tells_end_year THEN i.end_year
            ELSE coalesce(i.end_year, t.end_year)
        END AS end_year,
        coalesce(i.runtime_minutes, t.runtime_minutes) AS runtime_minutes,
        coalesce(i.votes, t.votes) AS votes,
        CASE WHEN is_newer THEN i.popularity ELSE coalesce(t.popularity, 0) END AS popularity,
        CASE
            WHEN is_newer THEN i.popularity_source
            ELSE t.popularity_source
        END AS popularity_source
) m
WHERE CASE
    WHEN t.title_id IS NULL
        THEN i.popularity_source = 'given' OR m.title IS NOT NULL AND m.kind IS NOT NULL
    ELSE (
        t.imdb_id, t.tmdb_id, t.tmdb_series_id, t.title, t.original_title, t.kind, t.year,
        t.end_year, t.runtime_minutes, t.votes, t.popularity, t.popularity_source
    ) IS DISTINCT FROM m
END
ORDER BY i.n;
CREATE TEMPORARY TABLE loaded ON COMMIT DROP AS
SELECT 0::bigint AS title_id, imdb_id, popularity, false AS is_new
FROM titles WITH NO DATA;
WITH added AS (
    INSERT INTO titles (
        imdb_id, tmdb_id, tmdb_series_id, title, original_title, kind, year,
        end_year, runtime_minutes, votes, popularity, popularity_source)
    SELECT imdb_id, tmdb_id, tmdb_series_id, title, original_title, kind, year,
        end_year, runtime_minutes, votes, popularity, popularity_source
    FROM merged WHERE title_id IS NULL
    RETURNING title_id, imdb_id, popularity, true
), changed AS (
    UPDATE titles t
    SET tmdb_id = m.tmdb_id,
        tmdb_series_id = m.tmdb_series_id,
        title = m.title,
        original_title = m.original_title,
        kind = m.kind,
        year = m.year,
        end_year = m.end_year,
        runtime_minutes = m.runtime_minutes,
        votes = m.votes,
        popularity = m.popularity,
        popularity_source = m.popularity_source
    FROM merged m WHERE t.title_id = m.title_id
    RETURNING t.title_id, t.imdb_id, t.popularity, false
)
INSERT INTO loaded TABLE added UNION ALL TABLE changed;

INSERT INTO title_sites (title_id, site, popularity, site_id, id_source, id_verified)
SELECT title_id,
    site,
    popularity,
    CASE site WHEN 'imdb' THEN imdb_id END,
    CASE site WHEN 'imdb' THEN 'given'::id_source END,
    site = 'imdb'
FROM loaded CROSS JOIN (SELECT site FROM sites) AS known WHERE is_new;
UPDATE title_sites s SET popularity = l.popularity
FROM (
    SELECT title_id, popularity FROM loaded WHERE NOT is_new
    UNION ALL
    SELECT t.title_id, l.popularity
    FROM loaded l JOIN titles t ON t.series_title_id = l.title_id
    WHERE NOT is_new
) l
WHERE s.title_id = l.title_id AND s.popularity <> l.popularity;

-- Ids on the other sites. A known id stays if a record has it, a page has confirmed it, or a better
-- source gave it. An id that was refused is not accepted again. An id of a title without an IMDb id
-- goes to the title that the row names.
CREATE TEMPORARY TABLE leads ON COMMIT DROP AS
SELECT DISTINCT ON (s.site, l.site_id) s.title_id, s.site, l.site_id, i.id_source, i.id_confidence
FROM incoming i
CROSS JOIN LATERAL jsonb_each_text(i.site_ids) AS l (site, site_id)
JOIN titles t USING (imdb_id)
JOIN title_sites s ON s.title_id = t.title_id AND s.site = l.site
WHERE (s.site_id IS NULL
        OR s.site_id <> l.site_id AND NOT s.id_verified
        AND s.last_success IS NULL AND i.id_source >= s.id_source)
    AND NOT EXISTS (
        SELECT FROM title_matches m
        WHERE m.title_id = s.title_id AND m.site = s.site AND m.site_id = l.site_id
            AND m.decision <> 'accepted' AND (m.by_hand OR m.decided_at >= %(since)s))
    AND NOT EXISTS (
        SELECT FROM title_sites o JOIN titles ot USING (title_id)
        WHERE o.site = s.site AND o.site_id = l.site_id
            AND (ot.imdb_id IS NOT NULL OR o.id_verified))
ORDER BY s.site, l.site_id, i.n DESC;
UPDATE title_sites s SET site_id = NULL, id_source = NULL, id_confidence = NULL
FROM leads l WHERE s.site = l.site AND s.site_id = l.site_id;
UPDATE title_sites s
SET site_id = l.site_id,
    id_source = l.id_source,
    id_confidence = l.id_confidence,
    state = 'never',
    failures = 0,
    next_due = 'epoch'
FROM leads l WHERE s.title_id = l.title_id AND s.site = l.site;

-- Episodes that were stored before their series was known are given to it.
SELECT sync_catalogue(array_agg(l.title_id)) FROM loaded l
WHERE l.is_new
    AND EXISTS (SELECT FROM records r WHERE r.series_id = l.imdb_id AND r.site = 'imdb')
HAVING count(*) > 0;
INSERT INTO imports AS i (source, version, rows_done)
VALUES (%(source)s, %(version)s, %(rows_done)s)
ON CONFLICT (source) DO UPDATE
SET version = excluded.version, rows_done = excluded.rows_done, finished_at = NULL;
SELECT count(*) FILTER (WHERE is_new) AS added,
    count(*) FILTER (WHERE NOT is_new) AS changed,
    (SELECT count(*) FROM leads) AS ids,
    (SELECT count(*) FROM incoming WHERE imdb_id IS NULL) AS unknown
FROM loaded
