-- additive
-- The titles under which something is known too, from IMDb's title.akas: a JSON array of {title, country, language, kind}, in IMDb's order.
ALTER TABLE records ADD COLUMN other_titles jsonb NOT NULL DEFAULT '[]';

-- Each of them as a row; position 1 is the first.
CREATE VIEW other_titles AS
SELECT r.title_id, r.record_id, r.site, r.site_id, o.position::integer AS position, o.entry ->> 'title' AS title,
    o.entry ->> 'country' AS country, o.entry ->> 'language' AS language, o.entry ->> 'kind' AS kind
FROM records r CROSS JOIN LATERAL jsonb_array_elements(r.other_titles) WITH ORDINALITY AS o (entry, position);
