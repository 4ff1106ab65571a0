"""Telling a refusal from a page."""
