-- What is stored of each title of a batch, in the batch's order; ids in reserve for those that are new.
-- sites, site_ids, partial: arrays of equal length; `partial` asks for the stored item.
SELECT coalesce(k.record_id, nextval(pg_get_serial_sequence('records', 'record_id'))),
    coalesce(k.title_id, nextval(pg_get_serial_sequence('titles', 'title_id'))),
    k.match_keys,
    k.placed_by_hand,
    CASE WHEN k.partial THEN (SELECT i.item::text FROM items i WHERE i.record_id = k.record_id) END
FROM (
    SELECT r.record_id, r.title_id, r.match_keys, coalesce(r.placed_by_hand, false) AS placed_by_hand, a.partial
    FROM unnest(%(sites)s::site[], %(site_ids)s::text[], %(partial)s::boolean[])
        WITH ORDINALITY AS a (site, site_id, partial, place)
    LEFT JOIN records r ON r.site = a.site AND r.site_id = a.site_id
    ORDER BY a.place
) k
