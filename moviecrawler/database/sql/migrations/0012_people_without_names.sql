-- IMDb's datasets name people by ids, and its file of names lacks some of them. Null: the name is not known.
ALTER TABLE people ALTER COLUMN name DROP NOT NULL;
ALTER TABLE credits ALTER COLUMN name DROP NOT NULL;
