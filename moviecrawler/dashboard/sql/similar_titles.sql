-- The titles that have most in common with one. Arguments: id, most (titles).
SELECT title_id, title, year, shared FROM similar_titles(%(id)s, %(most)s)
