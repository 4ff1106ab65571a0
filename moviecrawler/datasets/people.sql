-- The people of the titles from $first to $last: of each title and role, the items in JSON, with
-- commas between them.
CREATE OR REPLACE TABLE people AS
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
    WHERE tconst BETWEEN $first AND $last
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
)
SELECT
    tconst,
    role,
    -- Without the list's brackets.
    substr(items, 2, length(items) - 2) AS items
FROM (
    SELECT
        tconst,
        role,
        to_json(
            list_transform(
                people,
                lambda x, i: {
                    name: x.name,
                    role: role,
                    position: i,
                    person_id: x.nconst,
                    character: x.character
                }
            )
        )::VARCHAR AS items
    FROM of_role
)
