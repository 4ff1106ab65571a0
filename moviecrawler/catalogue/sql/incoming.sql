-- What an import brings, before it is merged; emptied with each part.
CREATE TEMPORARY TABLE IF NOT EXISTS incoming (
    n                 bigint NOT NULL,
    imdb_id           text,
    tmdb_id           integer,  -- of a film
    tmdb_series_id    integer,
    title             text,
    original_title    text,
    kind              title_kind,
    year              integer,
    end_year          integer,
    tells_end_year    boolean NOT NULL,
    runtime_minutes   integer,
    votes             integer,
    popularity        real,
    popularity_source popularity_source NOT NULL,
    site_ids          jsonb,  -- by site
    id_source         id_source NOT NULL,
    id_confidence     real NOT NULL
) ON COMMIT DELETE ROWS
