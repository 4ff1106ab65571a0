from tests.stored import database

__all__ = ["database"]
