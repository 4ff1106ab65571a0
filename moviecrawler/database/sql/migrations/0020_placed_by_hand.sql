-- additive
-- An id whose record a person has placed is given by hand: no import, list or page makes it another title's. But for that, the function is as before.
CREATE OR REPLACE FUNCTION move_record(of_site site, of_id text, target bigint DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    former bigint;
BEGIN
    PERFORM lock_titles();
    SELECT title_id INTO former FROM records WHERE site = of_site AND site_id = of_id;
    IF former IS NULL THEN
        RAISE EXCEPTION 'there is no record % of %', of_id, of_site;
    END IF;
    IF EXISTS (SELECT FROM records WHERE title_id = target AND site = of_site AND site_id <> of_id) THEN
        RAISE EXCEPTION 'title % has another record of % already; move that one first', target, of_site;
    END IF;
    IF target IS NULL THEN
        INSERT INTO titles DEFAULT VALUES RETURNING title_id INTO target;
    END IF;
    UPDATE records SET title_id = target, placed_by_hand = true WHERE site = of_site AND site_id = of_id;
    UPDATE titles SET matched_by = array_append(matched_by, 'placed by hand')
    WHERE title_id = target AND EXISTS (SELECT FROM records WHERE title_id = target AND site <> of_site);
    UPDATE titles SET matched_by =
        CASE WHEN (SELECT count(*) FROM records WHERE title_id = former) = 1 THEN '{}' ELSE '{placed by hand}'::text[] END
    WHERE title_id = former;
    PERFORM settle_titles(ARRAY[former, target]);
    UPDATE title_sites SET id_source = 'given', id_verified = true WHERE title_id = target AND site = of_site AND site_id = of_id;
    RETURN target;
END
$$;
