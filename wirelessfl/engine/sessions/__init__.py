"""Execution of sessions: clients that join and leave, trial rounds, warm starts."""
