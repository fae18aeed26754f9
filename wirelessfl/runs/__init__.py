"""Runs: start, resume, folders on disk, sweeps, results and timelines."""
