"""Benchmarks: ratios against the alternative, measured in the same run."""
