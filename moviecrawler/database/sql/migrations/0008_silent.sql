-- What neither the page of a record nor an earlier one tells: names of fields without a value, as in `items.Movie.silent`.
-- Null and an empty list mean that the site states to have none, unless the field is named here.
--
-- `unsure` named what a page lacked although pages like it had it. Where an earlier page's value was kept, it stands; the
-- other ones are silent. So is what rows of lists and datasets can't tell.
ALTER TABLE records ADD COLUMN silent text[] NOT NULL DEFAULT '{}';

CREATE TEMPORARY TABLE told (site site NOT NULL, kind title_kind, name text NOT NULL) ON COMMIT DROP;  -- kind: null for all
INSERT INTO told
SELECT s.site, NULL, n.name
FROM (VALUES
    ('imdb'::site, '{original_title,title_type,countries,languages,popularity_rank,scores.imdb,scores.metascore,
        amounts.budget,amounts.opening_weekend,amounts.domestic,amounts.worldwide}'::text[]),
    ('metacritic', '{imdb_id,countries,languages,scores.metascore,scores.metacritic_user}'),
    ('rottentomatoes', '{languages,scores.tomatometer,scores.popcornmeter,amounts.domestic}')
) s (site, names) CROSS JOIN LATERAL unnest(s.names || '{year,release_date,runtime_minutes,genres,certificate,plot,
    poster_url,credits.director,credits.writer,credits.cast}'::text[]) n (name);
INSERT INTO told VALUES
    ('imdb', 'series', 'credits.creator'), ('metacritic', 'series', 'credits.creator'),
    ('rottentomatoes', 'series', 'credits.creator'), ('imdb', 'series', 'end_year'), ('rottentomatoes', 'series', 'end_year'),
    ('imdb', 'series', 'imdb_top250_tv_rank'), ('imdb', 'movie', 'imdb_top250_rank'), ('imdb', 'episode', 'series_id'),
    ('imdb', 'episode', 'series_title'), ('imdb', 'episode', 'season'), ('imdb', 'episode', 'episode');

UPDATE records r SET silent = ARRAY(
    SELECT n.name
    FROM (
        SELECT t.name
        FROM told t
        WHERE t.site = r.site AND (t.kind IS NULL OR t.kind = r.kind)
            AND (r.unsure ? t.name OR r.source = 'list' OR (r.source = 'dataset' AND t.name <> ALL (
                '{title_type,original_title,year,end_year,runtime_minutes,genres,scores.imdb}'::text[])))
            AND coalesce(to_jsonb(r) -> t.name, 'null') IN ('null', '[]')
            AND NOT EXISTS (SELECT FROM record_genres g WHERE g.record_id = r.record_id AND t.name = 'genres')
            AND NOT EXISTS (SELECT FROM credits c WHERE c.record_id = r.record_id AND t.name = 'credits.' || c.role)
            AND NOT EXISTS (SELECT FROM scores s WHERE s.record_id = r.record_id AND t.name = 'scores.' || s.kind)
            AND NOT EXISTS (SELECT FROM amounts a WHERE a.record_id = r.record_id AND t.name = 'amounts.' || a.kind)
        UNION ALL
        SELECT 'scores.' || s.kind || '.count'
        FROM scores s
        WHERE s.record_id = r.record_id AND s.count IS NULL
            AND (r.source = 'list' OR r.unsure ? ('scores.' || s.kind || '.count'))
    ) n
    ORDER BY n.name COLLATE "C")
WHERE source <> 'page' OR unsure <> '{}';

ALTER TABLE records DROP COLUMN unsure;
