"""Runs: their folder on disk, and starting or resuming one."""
