-- Version 5: unknown_fields names columns. A score or an amount that is unknown names its count (if
-- the score is the site's own) or its currency, too.

CREATE TEMPORARY TABLE renamed ON COMMIT DROP AS
WITH names (old, site, new) AS (
    SELECT 'scores.' || kind AS old, NULL AS site, value_column AS new
    FROM score_kinds WHERE value_column IS NOT NULL
    UNION
    SELECT 'scores.' || kind || '.count', NULL, count_column
    FROM score_kinds WHERE count_column IS NOT NULL
    UNION
    SELECT 'scores.' || kind, site, count_column
    FROM score_kinds WHERE count_column IS NOT NULL
    UNION
    VALUES
        ('scores.imdb', NULL, 'imdb_rating'),
        ('scores.imdb.count', NULL, 'imdb_votes'),
        ('scores.imdb', 'imdb', 'imdb_votes'),
        ('scores.metascore', NULL, 'metascore'),
        ('scores.metascore.count', NULL, 'metascore_reviews'),
        ('scores.metascore', 'metacritic', 'metascore_reviews'),
        ('scores.metacritic_user', NULL, 'metacritic_user_score'),
        ('scores.metacritic_user.count', NULL, 'metacritic_user_ratings'),
        ('scores.metacritic_user', 'metacritic', 'metacritic_user_ratings'),
        ('scores.tomatometer', NULL, 'tomatometer'),
        ('scores.tomatometer.count', NULL, 'tomatometer_reviews'),
        ('scores.tomatometer', 'rottentomatoes', 'tomatometer_reviews'),
        ('scores.popcornmeter', NULL, 'popcornmeter'),
        ('scores.popcornmeter.count', NULL, 'popcornmeter_ratings'),
        ('scores.popcornmeter', 'rottentomatoes', 'popcornmeter_ratings'),
        ('credits.director', NULL, 'directors'),
        ('credits.writer', NULL, 'writers'),
        ('credits.creator', NULL, 'creators'),
        ('amounts.budget', NULL, 'budget'),
        ('amounts.budget', NULL, 'budget_currency'),
        ('amounts.opening_weekend', NULL, 'opening_weekend'),
        ('amounts.opening_weekend', NULL, 'opening_weekend_currency'),
        ('amounts.domestic', NULL, 'domestic_gross'),
        ('amounts.domestic', NULL, 'domestic_gross_currency'),
        ('amounts.worldwide', NULL, 'worldwide_gross'),
        ('amounts.worldwide', NULL, 'worldwide_gross_currency')
)
SELECT r.site, r.unknown_fields AS old, (
    SELECT jsonb_agg(name ORDER BY name COLLATE "C") FROM (
        SELECT DISTINCT coalesce(n.new, f.value) AS name
        FROM jsonb_array_elements_text(r.unknown_fields) f
        LEFT JOIN names n ON n.old = f.value AND (n.site IS NULL OR n.site = r.site)
    ) named
) AS new
FROM (
    SELECT DISTINCT site, unknown_fields FROM records WHERE unknown_fields::text LIKE '%.%'
) r;
UPDATE records r SET unknown_fields = n.new
FROM renamed n
WHERE n.old = r.unknown_fields AND n.site = r.site;
