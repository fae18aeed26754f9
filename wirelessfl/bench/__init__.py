"""Benchmarks: execution times, and ratios to a reference measured in the same run."""
