"""Execution of rounds of one model: synchronous rounds or asynchronous cells."""
