"""Execution of tasks, one model each: asynchronous requests, or rounds with a common barrier."""
