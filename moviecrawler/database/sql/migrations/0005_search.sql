-- What the dashboard looks for: titles by their words and by popularity, and pages that could not be read.

-- The words of a title, in the form that `dashboard.search` asks for: without accents, with ASCII punctuation taken as spaces.
-- Only pg_catalog's functions, as an index is also built where no other ones are found. Most titles are plain ASCII, in
-- which there is no accent to look for.
CREATE FUNCTION title_words(title text, original_title text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 20 AS $$
    SELECT to_tsvector('pg_catalog.simple', translate(
        CASE
            WHEN octet_length(coalesce(title, '') || coalesce(original_title, ''))
                = length(coalesce(title, '') || coalesce(original_title, ''))
            THEN coalesce(title, '') || ' ' || coalesce(original_title, '')
            ELSE regexp_replace(
                normalize(coalesce(title, '') || ' ' || coalesce(original_title, ''), NFKD), '[\u0300-\u036f]', '', 'g')
        END, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
$$;

CREATE INDEX titles_words ON titles USING gin (title_words(title, original_title));
CREATE INDEX titles_popularity ON titles (popularity, title_id);
CREATE INDEX misses_failed ON misses (checked_at) WHERE outcome = 'failed';
