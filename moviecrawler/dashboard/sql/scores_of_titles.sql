-- The scores of some titles. ids.
SELECT title_id, kind::text, value::float, count FROM title_scores WHERE title_id = ANY (%(ids)s)
