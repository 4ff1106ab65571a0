-- The table of a part of an import, before it is merged: a row for each `ImportRow`.
-- site_ids is an object by site.
CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS
SELECT 0::bigint AS n,
    imdb_id,
    tmdb_id,
    tmdb_series_id,
    title,
    original_title,
    kind,
    year,
    end_year,
    false AS tells_end_year,
    runtime_minutes,
    votes,
    popularity,
    popularity_source,
    NULL::jsonb AS site_ids,
    NULL::id_source AS id_source,
    0::real AS id_confidence
FROM titles WITH NO DATA
