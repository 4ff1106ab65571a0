-- What the page of a record lacked although pages like it have it: field → 'unusual' or 'collapsed', as in `items.Movie`. The
-- view `items` shows it by itself, as it holds whole rows. A constant default rewrites no row.
ALTER TABLE records ADD COLUMN unsure jsonb NOT NULL DEFAULT '{}';
