-- The scores of some titles. Arguments: ids.
SELECT title_id, kind::text, value::float, count FROM title_scores WHERE title_id = ANY (%(ids)s)
