"""Carrying out sessions: clients that come and go, trial rounds, warm starts."""
