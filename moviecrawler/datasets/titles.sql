-- What each of IMDb's datasets has of the titles from $first to $last; nothing where it has no row
-- of a title. Of basics, ratings and episode, that is a list of the rows in JSON; of the others, it
-- is the items in JSON, with commas between them.
CREATE OR REPLACE TABLE rows AS
WITH persons AS (
    SELECT
        tconst,
        role,
        nconst,
        min(ordering) AS first,
        any_value(primaryName) AS name,
        any_value(characters) AS strings,
        count(*) AS number
    FROM credits
    WHERE tconst BETWEEN $first AND $last AND nconst <> ''
    GROUP BY ALL
),
-- A list for each person would take most of the time, and few have several rows.
several AS (
    SELECT
        tconst,
        role,
        nconst,
        list_sort(list({ordering: credits.ordering, strings: characters})) AS given
    FROM credits
    SEMI JOIN (FROM persons WHERE number > 1) USING (tconst, role, nconst)
    GROUP BY ALL
),
played AS (
    SELECT
        * EXCLUDE (strings, number, given),
        coalesce(given, [{ordering: first, strings: strings}]) AS lists,
        flatten(list_transform(lists, lambda x: from_json(x.strings, '["VARCHAR"]'))) AS parts
    FROM persons
    LEFT JOIN several USING (tconst, role, nconst)
),
named AS (
    SELECT
        * EXCLUDE (lists, parts),
        CASE
            WHEN len(parts) > 1
            THEN list_filter(parts, lambda x, i: list_position(parts, x) = i)
            ELSE parts
        END AS others,
        list_filter(list_transform(others, lambda x: trim(x)), lambda x: x <> '') AS shown,
        array_to_string(shown, ' / ') AS text,
        -- A person with more small parts gets the first ones.
        left(text, 9000) AS cut,
        CASE
            WHEN length(text) > 9000
            THEN left(cut, -2 - strpos(reverse(cut), ' / '))
            ELSE nullif(text, '')
        END AS character
    FROM played
),
of_role AS (
    SELECT
        tconst,
        role,
        list_sort(
            list({first: first, nconst: nconst, name: name, character: character})
        ) AS people
    FROM named
    GROUP BY tconst, role
),
in_json AS (
    SELECT
        tconst,
        role,
        array_to_string(
            list_transform(
                people,
                lambda x, i: to_json(
                    {
                        name: x.name,
                        role: role,
                        position: i,
                        person_id: x.nconst,
                        character: x.character
                    }
                )::VARCHAR
            ),
            ','
        ) AS items
    FROM of_role
),
of_title AS (
    SELECT
        tconst,
        any_value(items) FILTER (WHERE role = 'director') AS directors,
        any_value(items) FILTER (WHERE role = 'writer') AS writers,
        any_value(items) FILTER (WHERE role = 'cast') AS actors
    FROM in_json
    GROUP BY tconst
),
others AS (
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
FROM (SELECT DISTINCT tconst FROM wanted WHERE tconst BETWEEN $first AND $last)
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
LEFT JOIN of_title USING (tconst)
LEFT JOIN others USING (tconst)
