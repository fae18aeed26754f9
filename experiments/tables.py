"""Tables by column, and lines below tables on missing and older runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from experiments.studies import Results
from wirelessfl.results.costs import markdown

T = TypeVar("T")

LISTED = 6
"""Missing cases that are listed below a table."""


def table_of(items: Iterable[T], columns: Mapping[str, Callable[[T], str]]) -> str:
    """A Markdown table with a row per item; ``columns`` are functions of an item by title."""
    cells = [[cell(item) for cell in columns.values()] for item in items]
    return markdown([*columns], cells)


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
