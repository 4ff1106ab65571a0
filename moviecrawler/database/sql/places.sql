-- The titles to which records belong: a record of IMDb to the title that has its IMDb id; a record
-- of another site has the IMDb id of the title that its page was verified for.
-- sites, site_ids: arrays of equal length.
SELECT a.site, a.site_id,
    CASE WHEN a.site = 'imdb' THEN (
        SELECT t.title_id FROM titles t WHERE t.imdb_id = a.site_id
    ) END AS title_id,
    CASE WHEN a.site <> 'imdb' THEN (
        SELECT t.imdb_id FROM title_sites s JOIN titles t USING (title_id)
        WHERE s.site = a.site AND s.site_id = a.site_id AND s.id_verified
    ) END AS imdb_id
FROM unnest(%(sites)s::text[], %(site_ids)s::text[]) AS a (site, site_id)
