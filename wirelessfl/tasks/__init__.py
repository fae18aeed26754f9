"""Carrying out trainings of several models: asynchronous requests, or rounds with a common end."""
