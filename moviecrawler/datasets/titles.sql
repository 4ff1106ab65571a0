-- What each of IMDb's datasets has of the titles in `part`, which are from $first to $last; nothing
-- where it has no row of one. Of basics, ratings and episode, that is a list of the rows in JSON;
-- of the others, it is the items in JSON, with commas between them.
CREATE OR REPLACE TABLE rows AS
WITH others AS (
    SELECT
        titleId AS tconst,
        list_sort(
            list(
                {
                    ordering: CAST(ordering AS INTEGER),
                    title: title,
                    country: region,
                    language: language,
                    kind: replace(types, chr(2), ', ')
                }
            ) FILTER (WHERE length(title) <= 500)
        ) AS titles
    FROM akas
    WHERE titleId BETWEEN $first AND $last
    GROUP BY titleId
)
SELECT
    tconst AS id,
    b.rows AS basics,
    r.rows AS ratings,
    e.rows AS episode,
    CASE WHEN has_crew THEN concat_ws(',', directors, writers) END AS crew,
    CASE WHEN has_principals THEN coalesce(actors, '') END AS principals,
    CASE
        WHEN others.tconst IS NOT NULL
        THEN coalesce(
            array_to_string(
                list_transform(
                    titles,
                    lambda x: to_json(
                        {title: x.title, country: x.country, language: x.language, kind: x.kind}
                    )::VARCHAR
                ),
                ','
            ),
            ''
        )
    END AS akas
FROM part
LEFT JOIN (
    SELECT
        tconst,
        list(
            json_array(
                tconst,
                titleType,
                primaryTitle,
                originalTitle,
                startYear,
                endYear,
                runtimeMinutes,
                genres
            )::VARCHAR
        ) AS rows
    FROM basics
    WHERE tconst BETWEEN $first AND $last
    GROUP BY tconst
) b USING (tconst)
LEFT JOIN (
    SELECT tconst, list(json_array(tconst, averageRating, numVotes)::VARCHAR) AS rows
    FROM ratings
    WHERE tconst BETWEEN $first AND $last
    GROUP BY tconst
) r USING (tconst)
LEFT JOIN (
    SELECT
        tconst,
        list(
            json_array(tconst, parentTconst, seasonNumber, episodeNumber, primaryTitle)::VARCHAR
        ) AS rows
    FROM episode
    LEFT JOIN series USING (parentTconst)
    WHERE tconst BETWEEN $first AND $last
    GROUP BY tconst
) e USING (tconst)
LEFT JOIN (
    SELECT DISTINCT tconst, true AS has_crew
    FROM crew
    WHERE tconst BETWEEN $first AND $last
) USING (tconst)
LEFT JOIN (
    SELECT DISTINCT tconst, true AS has_principals
    FROM principals
    WHERE tconst BETWEEN $first AND $last
) USING (tconst)
LEFT JOIN people USING (tconst)
LEFT JOIN others USING (tconst)
