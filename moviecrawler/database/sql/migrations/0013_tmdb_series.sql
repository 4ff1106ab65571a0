-- additive
-- TMDB numbers films and series each from 1: `tmdb_id` is that of a film, and a series has one of its own.
ALTER TABLE titles ADD COLUMN tmdb_series_id integer;

-- As before, with TMDB's id.
-- One row a title. What a site hasn't is null. Where sites differ on the title itself, IMDb goes before Rotten Tomatoes
-- before Metacritic. Columns that end in _100 are the score on a scale of 0 to 100.
CREATE OR REPLACE VIEW scoreboard AS
SELECT t.title_id,
    coalesce(i.title, r.title, m.title) AS title,
    coalesce(i.year, r.year, m.year) AS year,
    coalesce(i.kind, r.kind, m.kind) AS kind,
    coalesce(i.runtime_minutes, r.runtime_minutes, m.runtime_minutes) AS runtime_minutes,
    coalesce(i.site_id, r.imdb_id, m.imdb_id) AS imdb_id,
    i.url AS imdb_url,
    m.site_id AS metacritic_id,
    m.url AS metacritic_url,
    r.site_id AS rottentomatoes_id,
    r.url AS rottentomatoes_url,
    s.imdb_rating, s.imdb_votes, s.imdb_rating_100,
    s.metascore, s.metascore_reviews, s.metascore_100,
    s.metacritic_user_score, s.metacritic_user_ratings, s.metacritic_user_score_100,
    s.tomatometer, s.tomatometer_reviews, s.tomatometer_100,
    s.popcornmeter, s.popcornmeter_ratings, s.popcornmeter_100,
    round(s.critics_mean, 1) AS critics_mean,  -- of Metascore and Tomatometer, 0 to 100
    round(s.users_mean, 1) AS users_mean,  -- of IMDb, Metacritic's users and Popcornmeter, 0 to 100
    -- Critics and users count the same, however many scores stand on either side.
    round(coalesce((s.critics_mean + s.users_mean) / 2, s.critics_mean, s.users_mean), 1) AS overall,
    i.scraped_at AS imdb_fetched_at,
    m.scraped_at AS metacritic_fetched_at,
    r.scraped_at AS rottentomatoes_fetched_at,
    i.list_name AS imdb_list_name,
    i.list_rank AS imdb_list_rank,
    least(i.list_rank, m.list_rank, r.list_rank) AS best_list_rank,
    t.matched_by,
    -- Of a series at themoviedb.org/tv/<id>, of everything else at themoviedb.org/movie/<id>.
    CASE WHEN coalesce(i.kind, r.kind, m.kind) = 'series' THEN t.tmdb_series_id ELSE t.tmdb_id END AS tmdb_id
FROM titles t
LEFT JOIN records i ON i.title_id = t.title_id AND i.site = 'imdb'
LEFT JOIN records r ON r.title_id = t.title_id AND r.site = 'rottentomatoes'
LEFT JOIN records m ON m.title_id = t.title_id AND m.site = 'metacritic'
LEFT JOIN (
    SELECT title_id,
        max(value) FILTER (WHERE kind = 'imdb') AS imdb_rating,
        max(count) FILTER (WHERE kind = 'imdb') AS imdb_votes,
        max(normalised) FILTER (WHERE kind = 'imdb') AS imdb_rating_100,
        max(value) FILTER (WHERE kind = 'metascore') AS metascore,
        max(count) FILTER (WHERE kind = 'metascore') AS metascore_reviews,
        max(normalised) FILTER (WHERE kind = 'metascore') AS metascore_100,
        max(value) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_score,
        max(count) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_ratings,
        max(normalised) FILTER (WHERE kind = 'metacritic_user') AS metacritic_user_score_100,
        max(value) FILTER (WHERE kind = 'tomatometer') AS tomatometer,
        max(count) FILTER (WHERE kind = 'tomatometer') AS tomatometer_reviews,
        max(normalised) FILTER (WHERE kind = 'tomatometer') AS tomatometer_100,
        max(value) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter,
        max(count) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter_ratings,
        max(normalised) FILTER (WHERE kind = 'popcornmeter') AS popcornmeter_100,
        avg(normalised) FILTER (WHERE kind IN ('metascore', 'tomatometer')) AS critics_mean,
        avg(normalised) FILTER (WHERE kind NOT IN ('metascore', 'tomatometer')) AS users_mean
    FROM title_scores GROUP BY title_id
) s ON s.title_id = t.title_id
WHERE coalesce(i.record_id, r.record_id, m.record_id) IS NOT NULL;

-- Brings the catalogue after records that were written or moved: call it with the titles that have or had them.
CREATE OR REPLACE FUNCTION settle_titles(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former record;
    moved title_sites[];
BEGIN
    -- Known by an IMDb id is the title that has its record.
    FOR former IN
        SELECT t.*, r.title_id AS target FROM records r JOIN titles t ON t.imdb_id = r.site_id
        WHERE r.title_id = ANY (ids) AND r.site = 'imdb' AND t.title_id <> r.title_id
    LOOP
        UPDATE titles SET imdb_id = NULL, tmdb_id = NULL, tmdb_series_id = NULL WHERE title_id = former.title_id;
        UPDATE titles SET imdb_id = former.imdb_id, tmdb_id = former.tmdb_id,
            tmdb_series_id = former.tmdb_series_id, popularity = former.popularity,
            popularity_source = former.popularity_source, round_at = former.round_at
        WHERE title_id = former.target;
        UPDATE title_sites SET popularity = former.popularity WHERE title_id = former.target;
        ids := ids || former.title_id;
    END LOOP;
    UPDATE titles t SET imdb_id = r.site_id
    FROM records r
    WHERE r.title_id = ANY (ids) AND r.title_id = t.title_id AND r.site = 'imdb' AND t.imdb_id IS DISTINCT FROM r.site_id;

    UPDATE titles t
    SET title = r.title, original_title = r.original_title, kind = r.kind, year = r.year,
        runtime_minutes = r.runtime_minutes
    FROM (
        SELECT DISTINCT ON (title_id) * FROM records WHERE title_id = ANY (ids)
        ORDER BY title_id, array_position('{imdb,rottentomatoes,metacritic}'::site[], site)
    ) r
    WHERE r.title_id = t.title_id AND t.title IS NULL;

    INSERT INTO title_sites (title_id, site, popularity)
    SELECT t.title_id, unnest(enum_range(NULL::site)), t.popularity FROM titles t
    WHERE t.title_id = ANY (ids) AND (t.imdb_id IS NOT NULL OR EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id))
        AND (SELECT count(*) FROM title_sites s WHERE s.title_id = t.title_id) < 3
    ON CONFLICT DO NOTHING;

    -- An id goes with its record, and what is known of when it was fetched goes with the id.
    SELECT array_agg(s) INTO moved
    FROM records r JOIN title_sites s ON s.site = r.site AND s.site_id = r.site_id AND s.title_id <> r.title_id
    WHERE r.title_id = ANY (ids);
    IF moved IS NOT NULL THEN
        UPDATE title_sites s
        SET site_id = NULL, id_source = NULL, id_confidence = NULL, id_verified = false, state = 'never',
            last_success = NULL, failures = 0
        FROM unnest(moved) m WHERE s.title_id = m.title_id AND s.site = m.site;
        UPDATE title_sites s
        SET site_id = m.site_id, id_source = m.id_source, id_confidence = m.id_confidence, id_verified = m.id_verified,
            state = m.state, last_success = m.last_success, next_due = m.next_due, failures = m.failures,
            claimed_by = m.claimed_by, claimed_until = m.claimed_until
        FROM unnest(moved) m JOIN records r ON r.site = m.site AND r.site_id = m.site_id
        WHERE s.title_id = r.title_id AND s.site = r.site;
    END IF;
    UPDATE title_sites s
    SET site_id = r.site_id, id_source = 'joined', id_confidence = NULL, id_verified = false, failures = 0
    FROM records r
    WHERE r.title_id = ANY (ids) AND s.title_id = r.title_id AND s.site = r.site AND s.site_id IS DISTINCT FROM r.site_id;

    WITH gone AS (
        DELETE FROM titles t
        WHERE t.title_id = ANY (ids) AND t.imdb_id IS NULL
            AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id)
            AND NOT EXISTS (SELECT FROM title_sites s WHERE s.title_id = t.title_id AND s.site_id IS NOT NULL)
        RETURNING t.title_id
    )
    DELETE FROM title_sites s USING gone g WHERE s.title_id = g.title_id;
END
$$;
