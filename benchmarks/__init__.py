"""Benchmarks: execution times, and ratios to a reference measured in the same run.

They belong to the checkout and are not installed; ``wirelessfl bench`` of a checkout runs them.
"""
