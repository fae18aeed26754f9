"""Which file imports which, read from the sources: what tests check, and what is drawn of it."""
