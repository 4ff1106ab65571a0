-- What is stored of each title of a batch, in the batch's order, with fresh ids for new records and
-- titles. A record of IMDb belongs to the title that has its IMDb id; a record of another site has
-- the IMDb id of the title that its page was verified for.
-- sites, site_ids: arrays of equal length.
SELECT coalesce(k.record_id, nextval(pg_get_serial_sequence('records', 'record_id'))),
    coalesce(
        k.title_id,
        k.newer_title_id,
        k.known_title_id,
        nextval(pg_get_serial_sequence('titles', 'title_id'))),
    k.match_keys,
    k.placed_by_hand,
    k.newer_id,
    k.known_title_id IS NOT NULL,
    k.verified_imdb_id,
    (SELECT i.item::text FROM items i WHERE i.record_id = k.record_id)
FROM (
    SELECT r.record_id,
        r.title_id,
        r.match_keys,
        r.newer_id,
        newer.title_id AS newer_title_id,
        coalesce(r.placed_by_hand, false) AS placed_by_hand,
        a.nth,
        CASE WHEN a.site = 'imdb' THEN (
            SELECT t.title_id FROM titles t WHERE t.imdb_id = a.site_id
        ) END AS known_title_id,
        CASE WHEN a.site <> 'imdb' THEN (
            SELECT t.imdb_id FROM title_sites s JOIN titles t USING (title_id)
            WHERE s.site = a.site AND s.site_id = a.site_id AND s.id_verified
        ) END AS verified_imdb_id
    FROM unnest(%(sites)s::site[], %(site_ids)s::text[]) WITH ORDINALITY AS a (site, site_id, nth)
    LEFT JOIN records r ON r.site = a.site AND r.site_id = a.site_id
    LEFT JOIN records newer ON newer.record_id = r.newer_id
) k
ORDER BY k.nth
