-- additive
-- Series in the catalogue: when they ended, and TMDB's ids of them, by which its export finds them.

ALTER TABLE titles ADD COLUMN end_year integer CHECK (end_year BETWEEN 1870 AND 2100);  -- of a series; null: it runs, or nobody said
CREATE INDEX titles_tmdb_series_id ON titles (tmdb_series_id) WHERE tmdb_series_id IS NOT NULL;

-- Whether a series runs: an episode or a season of it came within the last two years, or it began then, and nobody says that it ended
-- before this year, or something came since. Kinds are compared as texts, as in migration 16.
CREATE FUNCTION runs(series bigint, at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT newest >= extract(year FROM at) - 2 AND (ended IS NULL OR ended >= extract(year FROM at) OR ended < newest)
    FROM titles t
    CROSS JOIN LATERAL (
        SELECT greatest(t.end_year, (SELECT max(r.end_year) FROM records r WHERE r.title_id = t.title_id)) AS ended,
            greatest(t.year,
                (SELECT max(p.year) FROM titles p WHERE p.series_title_id = t.title_id),
                (SELECT max(e.year) FROM imdb_episodes e WHERE e.series_imdb_id = t.imdb_id)) AS newest
    ) known
    WHERE t.title_id = series AND t.kind::text = 'series'
$$;

-- Whether a title is a series that runs, or the newest season of one: fetched every 7 days, as in catalogue.lanes.
CREATE FUNCTION airs(id bigint, at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(CASE t.kind::text
        WHEN 'series' THEN runs(t.title_id, at)
        WHEN 'season' THEN runs(t.series_title_id, at) AND NOT EXISTS (
            SELECT FROM titles later WHERE later.series_title_id = t.series_title_id AND later.season > t.season
                AND later.kind::text = 'season')
        END, false)
    FROM titles t WHERE t.title_id = id
$$;

-- Has series that run, of these or of all, fetched a week after the last time, as they may have begun again since. Returns on how many sites.
CREATE FUNCTION hasten_series(ids bigint[], at timestamptz) RETURNS bigint LANGUAGE sql AS $$
    SELECT lock_titles();
    WITH hastened AS (
        UPDATE title_sites s
        SET next_due = s.last_success + interval '7 days',
            boost_due = coalesce(s.boost_due, s.last_success + interval '6 days 12 hours')
        FROM titles t
        WHERE t.title_id = s.title_id AND t.kind::text = 'series' AND s.site_id IS NOT NULL AND s.state = 'ok'
            AND s.next_due > s.last_success + interval '7 days' AND (ids IS NULL OR t.title_id = ANY (ids))
            AND runs(t.title_id, at)
        RETURNING s.title_id
    )
    SELECT count(*) FROM hastened
$$;

-- As before; a series that runs, and waits for its week without a boost, is not kept from one.
CREATE OR REPLACE FUNCTION boost_title_ids(ids bigint[], weight real, at timestamptz) RETURNS bigint LANGUAGE sql AS $$
    WITH known AS (
        SELECT title_id, round_at, CASE WHEN round_at > at - interval '7 days' THEN
            CASE WHEN round_at > at THEN round_at ELSE round_at + interval '7 days' END ELSE at END AS next_round
        FROM titles WHERE title_id = ANY (ids) ORDER BY title_id FOR UPDATE
    ), rounds AS (
        UPDATE titles t SET round_at = k.next_round FROM known k WHERE t.title_id = k.title_id
    ), sites AS (
        UPDATE title_sites s SET boost = s.boost + weight,
            boost_due = CASE WHEN s.boost > 0 AND s.boost_due IS NOT NULL THEN s.boost_due ELSE least(s.boost_due,
                -- A page that came late in one round doesn't come early in the next; nor does the answer that there is none.
                CASE WHEN k.round_at IS NULL THEN k.next_round
                ELSE greatest(k.next_round, s.last_success + interval '7 days',
                    CASE WHEN s.state = 'absent' THEN s.next_due - interval '83 days' END) END) END,
            -- What is not known there is looked for at once.
            next_due = CASE WHEN s.site_id IS NULL AND s.state = 'never' THEN 'epoch' ELSE s.next_due END
        FROM known k WHERE s.title_id = k.title_id
    )
    SELECT count(*) FROM known
$$;
