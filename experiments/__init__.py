"""Experiments, one folder per paper: settings, scripts, published results."""
