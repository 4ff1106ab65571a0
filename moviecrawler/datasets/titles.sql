-- What each of IMDb's datasets has of the titles in `part`, which are from $first to $last; nothing
-- where it has no row of one. Of basics, ratings and episode, that is a list of the rows in JSON;
-- of the others, it is the items in JSON, with commas between them.
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
),
-- One table that is grouped once: each join would take 5 MB of memory, however few its rows.
found AS (
    SELECT
        tconst,
        'basics' AS source,
        json_array(
            tconst,
            titleType,
            primaryTitle,
            originalTitle,
            startYear,
            endYear,
            runtimeMinutes,
            genres
        )::VARCHAR AS text
    FROM basics
    UNION ALL
    SELECT tconst, 'ratings', json_array(tconst, averageRating, numVotes)::VARCHAR
    FROM ratings
    UNION ALL
    SELECT
        tconst,
        'episode',
        json_array(tconst, parentTconst, seasonNumber, episodeNumber, primaryTitle)::VARCHAR
    FROM episode
    LEFT JOIN series USING (parentTconst)
    UNION ALL
    SELECT tconst, 'crew', NULL
    FROM crew
    UNION ALL
    SELECT tconst, 'principals', NULL
    FROM principals
    UNION ALL
    SELECT tconst, role, items
    FROM people
    UNION ALL
    SELECT
        tconst,
        'akas',
        array_to_string(
            list_transform(
                titles,
                lambda x: to_json(
                    {title: x.title, country: x.country, language: x.language, kind: x.kind}
                )::VARCHAR
            ),
            ','
        )
    FROM others
)
SELECT
    tconst AS id,
    list(text) FILTER (WHERE source = 'basics') AS basics,
    list(text) FILTER (WHERE source = 'ratings') AS ratings,
    list(text) FILTER (WHERE source = 'episode') AS episode,
    CASE
        WHEN bool_or(source = 'crew')
        THEN concat_ws(
            ',',
            any_value(text) FILTER (WHERE source = 'director'),
            any_value(text) FILTER (WHERE source = 'writer')
        )
    END AS crew,
    CASE
        WHEN bool_or(source = 'principals')
        THEN coalesce(any_value(text) FILTER (WHERE source = 'cast'), '')
    END AS principals,
    CASE
        WHEN bool_or(source = 'akas')
        THEN coalesce(any_value(text) FILTER (WHERE source = 'akas'), '')
    END AS akas
FROM part
LEFT JOIN found USING (tconst)
WHERE tconst BETWEEN $first AND $last
GROUP BY tconst
ORDER BY id
