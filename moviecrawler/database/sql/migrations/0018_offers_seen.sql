-- additive
-- When an offer was last seen. A reading that is silent of offers ends none, and `scrapy replay` fills in those of older pages: neither has
-- seen them.
ALTER TABLE offers ADD COLUMN seen_at timestamptz;  -- null: when its record was read

-- What each provider offers, as far as is known: nobody has looked since `seen_at`.
CREATE OR REPLACE VIEW titles_by_provider AS
SELECT o.provider, o.country, o.kind AS offer, t.title_id, coalesce(t.title, r.title) AS title, coalesce(t.year, r.year) AS year,
    o.quality, o.price, o.currency, o.url, o.since, o.source, r.site, coalesce(o.seen_at, r.scraped_at) AS seen_at
FROM offers o JOIN records r USING (record_id) JOIN titles t USING (title_id)
WHERE o.ended IS NULL;
