-- The episodes of a series that have numbers. Arguments: id, episodes (at most).
SELECT season, episode, title_id, title, imdb_rating::float, imdb_votes, tomatometer::float,
    metascore::float
FROM episode_scores WHERE series_title_id = %(id)s AND season IS NOT NULL AND episode IS NOT NULL
ORDER BY season, episode, imdb_votes DESC NULLS LAST LIMIT %(episodes)s
