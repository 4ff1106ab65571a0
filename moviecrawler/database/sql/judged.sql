-- The pages among records that were compared with titles, and what was decided; not what a person has decided.
-- sites, site_ids: arrays of equal length.
SELECT m.title_id, m.site::text, m.site_id, m.decision::text, i.item::text, coalesce(r.scraped_at, m.decided_at) AS scraped_at,
    coalesce(
        CASE WHEN s.id_source IN ('guess', 'list', 'sitemap', 'wikidata') THEN s.id_source END, g.source, 'guess'
    )::text AS evidence
FROM unnest(%(sites)s::site[], %(site_ids)s::text[]) AS a (site, site_id)
JOIN records r ON r.site = a.site AND r.site_id = a.site_id
JOIN items i ON i.record_id = r.record_id
JOIN title_matches m ON m.site = r.site AND m.site_id = r.site_id
LEFT JOIN title_sites s ON s.title_id = m.title_id AND s.site = m.site AND s.site_id = m.site_id
LEFT JOIN sightings g ON g.site = m.site AND g.site_id = m.site_id
WHERE NOT m.by_hand AND NOT r.placed_by_hand AND s.id_source IS DISTINCT FROM 'given'
    AND (m.decision = 'accepted') = (s.site_id IS NOT NULL)
ORDER BY m.title_id, m.site, m.site_id
