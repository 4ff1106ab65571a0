-- The seasons of a series, with every site's scores. Arguments: id, seasons (at most).
SELECT season, title_id, title, year, imdb_rating::float, imdb_votes, episodes,
    imdb_rating_episodes AS episodes_rated, episode_count, metascore::float,
    metacritic_user_score::float, tomatometer::float, popcornmeter::float
FROM season_scores WHERE series_title_id = %(id)s ORDER BY season LIMIT %(seasons)s
