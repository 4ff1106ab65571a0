-- The titles most like one, so many. id, most.
SELECT title_id, title, year, shared FROM similar_titles(%(id)s, %(most)s)
