"""Scores and credits of movies and series from IMDb, Metacritic and Rotten Tomatoes."""

__version__ = "0.1.0"
