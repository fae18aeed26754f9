"""Runs: starting, resuming, run directories, sweeps, results and timelines."""
