"""Execution of rounds of one model: synchronous, or of asynchronous cells."""
