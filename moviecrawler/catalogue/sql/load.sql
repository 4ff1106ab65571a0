-- Brings what stands in `incoming` into the catalogue. Unchanged rows are not touched. Returns how many titles were added,
-- how many were changed, and how many ids are new.
-- since: ids that were refused later than that stay refused.
SET LOCAL default_statistics_target = 10;  -- how many rows there are matters, and little else
ANALYZE incoming;

CREATE TEMPORARY TABLE loaded (title_id bigint, imdb_id text, popularity real, is_new boolean) ON COMMIT DROP;

WITH given AS (
    SELECT DISTINCT ON (imdb_id) * FROM incoming
    WHERE imdb_id IS NOT NULL AND title IS NOT NULL AND kind IS NOT NULL ORDER BY imdb_id, n DESC
), upserted AS (
    INSERT INTO titles AS t (imdb_id, tmdb_id, tmdb_series_id, title, original_title, kind, year, end_year, runtime_minutes,
        popularity, popularity_source, votes_popularity)
    SELECT imdb_id, tmdb_id, tmdb_series_id, title, original_title, kind, year, end_year, runtime_minutes, coalesce(popularity, 0),
        CASE WHEN popularity IS NOT NULL THEN popularity_source END,
        CASE WHEN popularity_source = 'votes' THEN popularity END
    FROM given ORDER BY n
    ON CONFLICT (imdb_id) WHERE imdb_id IS NOT NULL DO UPDATE
    SET tmdb_id = coalesce(excluded.tmdb_id, t.tmdb_id),
        tmdb_series_id = coalesce(excluded.tmdb_series_id, t.tmdb_series_id), title = excluded.title,
        original_title = excluded.original_title, kind = excluded.kind, year = coalesce(excluded.year, t.year),
        runtime_minutes = coalesce(excluded.runtime_minutes, t.runtime_minutes),
        votes_popularity = coalesce(excluded.votes_popularity, t.votes_popularity),
        popularity = popularity_of(excluded.popularity, excluded.popularity_source, t.popularity, t.popularity_source,
            coalesce(excluded.votes_popularity, t.votes_popularity), t.tmdb_popularity),
        popularity_source = greatest(excluded.popularity_source, t.popularity_source)
    WHERE (t.tmdb_id, t.tmdb_series_id, t.title, t.original_title, t.kind, t.year, t.runtime_minutes)
            IS DISTINCT FROM (coalesce(excluded.tmdb_id, t.tmdb_id), coalesce(excluded.tmdb_series_id, t.tmdb_series_id),
                              excluded.title, excluded.original_title, excluded.kind,
                              coalesce(excluded.year, t.year), coalesce(excluded.runtime_minutes, t.runtime_minutes))
        OR excluded.popularity_source = 'given' AND (t.popularity, t.popularity_source) IS DISTINCT FROM (excluded.popularity, 'given')
        OR excluded.votes_popularity IS DISTINCT FROM t.votes_popularity AND excluded.votes_popularity IS NOT NULL
    RETURNING t.title_id, t.imdb_id, t.popularity, t.xmax = 0 AS is_new
)
INSERT INTO loaded SELECT * FROM upserted;

INSERT INTO title_sites (title_id, site, popularity, site_id, id_source, id_verified)
SELECT l.title_id, s.site, l.popularity, CASE WHEN s.site = 'imdb' THEN l.imdb_id END,
    CASE WHEN s.site = 'imdb' THEN 'given'::id_source END, s.site = 'imdb'
FROM loaded l CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
WHERE l.is_new;

-- By itself, as a series that has begun to run again has no last year any more.
WITH given AS (
    SELECT DISTINCT ON (imdb_id) imdb_id, end_year FROM incoming
    WHERE imdb_id IS NOT NULL AND (tells_end_year OR end_year IS NOT NULL) ORDER BY imdb_id, n DESC
), changed AS (
    UPDATE titles t SET end_year = g.end_year FROM given g
    WHERE t.imdb_id = g.imdb_id AND t.end_year IS DISTINCT FROM g.end_year
    RETURNING t.title_id, t.imdb_id, t.popularity
)
INSERT INTO loaded SELECT title_id, imdb_id, popularity, false FROM changed;

-- What only completes a title that is known: its ids on TMDB first, as another row may tell something by them. A source may tell one thing
-- a row: of each thing the last row that tells it counts.
WITH given AS (
    SELECT t.title_id,
        (array_agg(i.tmdb_id ORDER BY i.n DESC) FILTER (WHERE i.tmdb_id IS NOT NULL))[1] AS tmdb_id,
        (array_agg(i.tmdb_series_id ORDER BY i.n DESC) FILTER (WHERE i.tmdb_series_id IS NOT NULL))[1] AS tmdb_series_id
    FROM incoming i JOIN titles t ON t.imdb_id = i.imdb_id
    WHERE i.title IS NULL OR i.kind IS NULL
    GROUP BY t.title_id
), changed AS (
    UPDATE titles t
    SET tmdb_id = coalesce(g.tmdb_id, t.tmdb_id), tmdb_series_id = coalesce(g.tmdb_series_id, t.tmdb_series_id)
    FROM given g
    WHERE t.title_id = g.title_id AND (t.tmdb_id IS DISTINCT FROM coalesce(g.tmdb_id, t.tmdb_id)
        OR t.tmdb_series_id IS DISTINCT FROM coalesce(g.tmdb_series_id, t.tmdb_series_id))
    RETURNING t.title_id, t.imdb_id, t.popularity
)
INSERT INTO loaded SELECT title_id, imdb_id, popularity, false FROM changed;

-- How popular a title is that is known by its IMDb id or by one of TMDB's.
WITH found AS (
    SELECT t.title_id, i.n, i.popularity, i.popularity_source FROM incoming i JOIN titles t ON t.imdb_id = i.imdb_id
    WHERE i.title IS NULL OR i.kind IS NULL
    UNION ALL
    SELECT t.title_id, i.n, i.popularity, i.popularity_source FROM incoming i JOIN titles t ON t.tmdb_id = i.tmdb_id
    WHERE i.imdb_id IS NULL
    UNION ALL
    SELECT t.title_id, i.n, i.popularity, i.popularity_source FROM incoming i JOIN titles t ON t.tmdb_series_id = i.tmdb_series_id
    WHERE i.imdb_id IS NULL
), given AS (
    SELECT DISTINCT ON (title_id) * FROM found WHERE popularity IS NOT NULL ORDER BY title_id, n DESC
), told AS (
    SELECT title_id, g.popularity, g.popularity_source,
        CASE WHEN g.popularity_source = 'votes' THEN g.popularity ELSE t.votes_popularity END AS votes_popularity,
        CASE WHEN g.popularity_source = 'tmdb' THEN g.popularity ELSE t.tmdb_popularity END AS tmdb_popularity
    FROM given g JOIN titles t USING (title_id)
), changed AS (
    UPDATE titles t
    SET votes_popularity = g.votes_popularity, tmdb_popularity = g.tmdb_popularity,
        popularity = popularity_of(g.popularity, g.popularity_source, t.popularity, t.popularity_source, g.votes_popularity, g.tmdb_popularity),
        popularity_source = greatest(g.popularity_source, t.popularity_source)
    FROM told g
    WHERE t.title_id = g.title_id
        AND ((t.votes_popularity, t.tmdb_popularity) IS DISTINCT FROM (g.votes_popularity, g.tmdb_popularity)
            OR g.popularity_source = 'given' AND (t.popularity, t.popularity_source) IS DISTINCT FROM (g.popularity, 'given'))
    RETURNING t.title_id, t.imdb_id, t.popularity
)
INSERT INTO loaded SELECT title_id, imdb_id, popularity, false FROM changed;

-- As the title has it now: it may stand in `loaded` more than once.
UPDATE title_sites s SET popularity = t.popularity
FROM loaded l JOIN titles t USING (title_id)
WHERE NOT l.is_new AND s.title_id = t.title_id AND s.popularity <> t.popularity;

-- A season is as popular as its series.
UPDATE title_sites s SET popularity = t.popularity
FROM loaded l JOIN titles t USING (title_id) JOIN titles p ON p.series_title_id = t.title_id
WHERE NOT l.is_new AND s.title_id = p.title_id AND s.popularity <> t.popularity;

-- Ids on the other sites: by themselves first, as most sources name none, and the planner must know.
CREATE TEMPORARY TABLE named ON COMMIT DROP AS
SELECT i.n, i.imdb_id, l.site::site, l.site_id, i.id_source, i.id_confidence
FROM incoming i CROSS JOIN LATERAL jsonb_each_text(i.site_ids) AS l (site, site_id)
WHERE i.imdb_id IS NOT NULL;

ANALYZE named;

-- One that a record has, a page has shown, or a better source gave, stays; one that was refused is not taken again; one
-- that only a title without IMDb id has goes to the title that it is said to be.
CREATE TEMPORARY TABLE leads ON COMMIT DROP AS
SELECT DISTINCT ON (s.site, n.site_id) s.title_id, s.site, n.site_id, n.id_source, n.id_confidence
FROM named n
JOIN titles t USING (imdb_id)
JOIN title_sites s ON s.title_id = t.title_id AND s.site = n.site
WHERE s.site_id IS DISTINCT FROM n.site_id
    AND (s.site_id IS NULL OR NOT s.id_verified AND s.last_success IS NULL AND n.id_source >= s.id_source)
    AND NOT EXISTS (SELECT FROM title_matches m WHERE m.title_id = s.title_id AND m.site = s.site AND m.site_id = n.site_id
        AND m.decision <> 'accepted' AND (m.by_hand OR m.decided_at >= %(since)s))
    AND NOT EXISTS (SELECT FROM title_sites o JOIN titles ot USING (title_id)
        WHERE o.site = n.site AND o.site_id = n.site_id AND (ot.imdb_id IS NOT NULL OR o.id_verified))
ORDER BY s.site, n.site_id, n.n DESC;

ANALYZE leads;

-- A title may be given two ids of a site.
DELETE FROM leads a USING leads b WHERE a.title_id = b.title_id AND a.site = b.site AND a.site_id > b.site_id;

UPDATE title_sites s SET site_id = NULL, id_source = NULL, id_confidence = NULL
FROM leads l WHERE s.site = l.site AND s.site_id = l.site_id;

UPDATE title_sites s
SET site_id = l.site_id, id_source = l.id_source, id_confidence = l.id_confidence, id_verified = false, state = 'never',
    failures = 0, next_due = 'epoch'
FROM leads l WHERE s.title_id = l.title_id AND s.site = l.site;

-- Episodes that were stored before their series was known belong to it from now on.
SELECT settle_titles(array_agg(l.title_id)) FROM loaded l
WHERE l.is_new AND EXISTS (SELECT FROM records r WHERE r.series_id = l.imdb_id AND r.site = 'imdb')
HAVING count(*) > 0;

INSERT INTO imports AS i (source, version, rows_done) VALUES (%(source)s, %(version)s, %(rows_done)s)
ON CONFLICT (source) DO UPDATE SET version = excluded.version, rows_done = excluded.rows_done, finished_at = NULL;

SELECT (SELECT count(*) FROM loaded WHERE is_new) AS added,
    (SELECT count(DISTINCT title_id) FROM loaded WHERE NOT is_new) AS changed, (SELECT count(*) FROM leads) AS ids
