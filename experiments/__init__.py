"""Experiments, one folder a paper: settings, scripts, what the paper reported."""
