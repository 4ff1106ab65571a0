-- What is stored of each title of a batch, in the batch's order; ids in reserve for those that are new. A record of IMDb
-- belongs to the title that the catalogue knows by its id; that it was verified to be a title's, a record of another site
-- is told by that title's IMDb id.
-- sites, site_ids, partial, scraped: arrays of equal length. The stored item comes with it where a reading is `partial`, or may not take
-- the place of the stored one; margin: see `replace_record.sql`.
SELECT coalesce(k.record_id, nextval(pg_get_serial_sequence('records', 'record_id'))),
    coalesce(k.title_id, k.known_title_id, nextval(pg_get_serial_sequence('titles', 'title_id'))),
    k.match_keys,
    k.placed_by_hand,
    k.known_title_id IS NOT NULL,
    k.verified_imdb_id,
    CASE WHEN k.partial OR k.scraped < k.scraped_at + %(margin)s * interval '1 second' AND k.scraped <> k.scraped_at
        THEN (SELECT i.item::text FROM items i WHERE i.record_id = k.record_id) END
FROM (
    SELECT r.record_id, r.title_id, r.match_keys, coalesce(r.placed_by_hand, false) AS placed_by_hand, r.scraped_at,
        a.partial, a.scraped, a.place,
        CASE WHEN a.site = 'imdb' THEN (SELECT t.title_id FROM titles t WHERE t.imdb_id = a.site_id) END AS known_title_id,
        CASE WHEN a.site <> 'imdb' THEN (
            SELECT t.imdb_id FROM title_sites s JOIN titles t USING (title_id)
            WHERE s.site = a.site AND s.site_id = a.site_id AND s.id_verified) END AS verified_imdb_id
    FROM unnest(%(sites)s::site[], %(site_ids)s::text[], %(partial)s::boolean[], %(scraped)s::timestamptz[])
        WITH ORDINALITY AS a (site, site_id, partial, scraped, place)
    LEFT JOIN records r ON r.site = a.site AND r.site_id = a.site_id
) k
ORDER BY k.place
