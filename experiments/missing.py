"""Lines below tables on missing runs and on those of an older version."""

from __future__ import annotations

from experiments.studies import Results

LISTED = 6
"""Missing cases that are listed below a table."""


def not_run(results: Results) -> str:
    """A line that lists missing runs: the first ones, and the number of further cases."""
    if not results.missing:
        return ""
    first, more = results.missing[:LISTED], len(results.missing) - LISTED
    rest = f"; and {more} further cases" if more > 0 else ""
    return f"\nNot run: {'; '.join(first)}{rest}.\n"


def outdated(results: Results) -> str:
    """A line that lists runs of an older version of the results."""
    if not results.outdated:
        return ""
    return "\nMade by an older version of the algorithms: " + "; ".join(results.outdated) + ".\n"
