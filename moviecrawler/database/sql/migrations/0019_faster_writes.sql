-- additive
-- What a title costs to store.

-- Whoever writes credits has locked their record, and has just found their people, whom nobody deletes. To look for both once more for each
-- credit, and to lock them, took more than half of the time that COPY takes for a title. A record's credits still go with it.
ALTER TABLE credits DROP CONSTRAINT credits_person_id_fkey, DROP CONSTRAINT credits_record_id_fkey;
CREATE OR REPLACE FUNCTION delete_credits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE credits;
    ELSE
        DELETE FROM credits c USING gone g WHERE c.record_id = g.record_id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER records_deleted AFTER DELETE ON records REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION delete_credits();
CREATE TRIGGER records_truncated AFTER TRUNCATE ON records FOR EACH STATEMENT EXECUTE FUNCTION delete_credits();

-- As before, put together at once and not part by part. A column that comes to `records` for a field of a movie has to come here too.
CREATE OR REPLACE VIEW items AS
SELECT r.record_id, r.title_id, r.placed_by_hand, r.site, r.site_id,
    to_jsonb(i) - array_remove(ARRAY[
        CASE WHEN r.external_ids IS NULL THEN 'external_ids' END,
        CASE WHEN r.season_count IS NULL AND 'season_count' <> ALL (r.absent_counts) THEN 'season_count' END,
        CASE WHEN r.episode_count IS NULL AND 'episode_count' <> ALL (r.absent_counts) THEN 'episode_count' END,
        CASE WHEN r.critic_review_count IS NULL AND 'critic_review_count' <> ALL (r.absent_counts) THEN 'critic_review_count' END], NULL) AS item
FROM records r
CROSS JOIN LATERAL (
    SELECT r.site, r.site_id, r.url, r.imdb_id, r.title, r.original_title, r.title_type, r.year, r.end_year, r.release_date,
        r.runtime_minutes, r.countries, r.languages, r.certificate, r.plot, r.poster_url, r.poster_width, r.poster_height, r.other_titles,
        r.keywords, r.interests, r.taglines, r.awards, r.related, r.consensus, r.external_ids, r.imdb_top250_rank, r.imdb_top250_tv_rank,
        r.critic_review_count, r.popularity_rank, r.series_id, r.series_title, r.season, r.episode, r.season_count, r.episode_count,
        r.list_name, r.list_rank, r.list_computed, r.source, r.silent, r.scraped_at, r.fetch,
        CASE WHEN r.kind::text = 'season' AND r.season IS NOT NULL THEN 'series' ELSE r.kind::text END AS kind,
        (SELECT coalesce(jsonb_agg(g.name ORDER BY rg.position), '[]')
         FROM record_genres rg JOIN genres g USING (genre_id) WHERE rg.record_id = r.record_id) AS genres,
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'name', c.name, 'role', c.role, 'position', c.position, 'person_id', p.site_person_id,
             'character', c.character) ORDER BY c.role, c.position), '[]')
         FROM credits c JOIN people p USING (person_id) WHERE c.record_id = r.record_id) AS credits,
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(s) - '{record_id,normalised}'::text[]) ORDER BY s.kind), '[]')
         FROM scores s WHERE s.record_id = r.record_id) AS scores,
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(f) - 'record_id') ORDER BY f.kind), '[]')
         FROM finer_scores f WHERE f.record_id = r.record_id) AS finer_scores,
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(o) - '{record_id,since,ended}'::text[])
             ORDER BY o.kind, o.provider, o.country, o.quality), '[]')
         FROM offers o WHERE o.record_id = r.record_id AND o.ended IS NULL) AS offers,
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'kind', a.kind, 'value', a.value, 'currency', a.currency) ORDER BY a.kind), '[]')
         FROM amounts a WHERE a.record_id = r.record_id) AS amounts
) i;

-- As before; a record's id is noted when its title comes to the catalogue, and not after.
CREATE OR REPLACE FUNCTION settle_titles(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former record;
    moved title_sites[];
BEGIN
    ids := settle_parts(ids);

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

    -- An id that another title is known by comes with what is known of it there, below.
    INSERT INTO title_sites (title_id, site, popularity, next_due, site_id, id_source)
    SELECT t.title_id, s.site, t.popularity,
        -- What the page of a series told of a season is noted soon after; a day later its own page is due, if that never happened.
        CASE WHEN r.source = 'list' AND r.kind::text = 'season' THEN r.scraped_at + interval '1 day' ELSE 'epoch' END,
        -- Counted, as EXISTS would be answered by reading all of them.
        CASE WHEN (SELECT count(*) FROM title_sites o WHERE o.site = r.site AND o.site_id = r.site_id) = 0 THEN r.site_id END,
        CASE WHEN r.site_id IS NOT NULL THEN 'joined'::id_source END
    FROM titles t CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
    LEFT JOIN records r ON r.title_id = t.title_id AND r.site = s.site
    WHERE t.title_id = ANY (ids)
        AND (r.record_id IS NOT NULL OR NOT is_part(t.kind, t.series_title_id::text)
            AND (t.imdb_id IS NOT NULL OR EXISTS (SELECT FROM records o WHERE o.title_id = t.title_id)))
        AND NOT EXISTS (SELECT FROM title_sites known WHERE known.title_id = t.title_id AND known.site = s.site)
    ON CONFLICT DO NOTHING;
    -- A season is as popular as its series.
    UPDATE title_sites s SET popularity = of.popularity
    FROM titles t JOIN titles of ON of.title_id = t.series_title_id
    WHERE t.title_id = ANY (ids) AND s.title_id = t.title_id AND s.popularity <> of.popularity;

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

    DELETE FROM title_sites s
    WHERE s.site_id IS NULL AND s.title_id = ANY (ARRAY(
        SELECT t.title_id FROM titles t WHERE t.title_id = ANY (ids) AND is_part(t.kind, t.series_title_id::text)));

    WITH gone AS (
        DELETE FROM titles t
        WHERE t.title_id = ANY (ids) AND t.imdb_id IS NULL
            AND NOT EXISTS (SELECT FROM records r WHERE r.title_id = t.title_id)
            AND NOT EXISTS (SELECT FROM title_sites s WHERE s.title_id = t.title_id AND s.site_id IS NOT NULL)
        RETURNING t.title_id
    ), orphaned AS (
        UPDATE titles t SET series_title_id = NULL FROM gone g WHERE t.series_title_id = g.title_id
    )
    DELETE FROM title_sites s USING gone g WHERE s.title_id = g.title_id;
END
$$;
