"""The paper's Tables 1 to 14 as printed, from the files of ``published/``.

Assumptions:

- Transitions are numbered as in the tables. The paper does not state which sessions they lead into;
  ``measures.session_of`` implements our assumption.
- Table 5 has the second and the fourth transition; the other tables start with the first one.
- Continuous has the same numbers with all algorithms except SCAFFOLD on MNIST and Fashion-MNIST
  (Tables 3 and 5), and mostly similar ones on other data: it seems to replace the algorithm.
- Some numbers in Tables 8, 9 and 11 are printed twice. FedProx and FedAvg have the same numbers
  with two shards on MNIST and Fashion-MNIST. FedProx on MNIST with overlapping halves has the
  numbers of CIFAR-100 with halves. In Table 11, FedProx, FedAvg and MOON have the same numbers at
  different transitions.
- The baseline of Table 10 is "Average" in the text and "Previous" in the header; we use the latter.
- The page on errata lists further rows that are printed twice (Tables 10 and 13).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("published")
NUMBERS = {"mean": float, "std": float, "overlap": float, "alpha": float, "transition": int}
NUMBERS |= {"similarity_scale": float}


@dataclass(frozen=True)
class PublishedRow:
    """A number in a table, with its settings; None for those that the table does not distinguish.

    Args:
        dataset: name of the data set in this package.
        algorithm: name of the algorithm in this package.
        mean: mean accuracy in the first ten rounds after a transition, in percent.
        std: sample standard deviation over three seeds.
        warm_start: name of the warm start in this package.
        transition: number of the transition, from 1.
        overlap: fraction of labels shared by consecutive sessions.
        alpha: parameter of the Dirichlet distribution.
        distribution: label distribution within a session, as a name of ``--split``.
        model: as printed.
        similarity_scale: R.
    """

    dataset: str
    algorithm: str
    mean: float
    std: float | None = None
    warm_start: str | None = None
    transition: int | None = None
    overlap: float | None = None
    alpha: float | None = None
    distribution: str | None = None
    model: str | None = None
    similarity_scale: float | None = None


@cache
def read(table: int) -> tuple[PublishedRow, ...]:
    """All numbers of a table, in printed order."""
    with (FOLDER / f"table{table}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedRow(**{name: NUMBERS.get(name, str)(text) for name, text in row.items()})
            for row in csv.DictReader(file)
        )


@cache
def find(table: int, **fields: Any) -> PublishedRow | None:
    """The number of a table with these fields; None if no number matches.

    Args:
        table: 1 to 14.
        fields: fields of ``PublishedRow``; fields that the table does not distinguish are ignored.
    """
    names = _columns(table)
    keys = {name: value for name, value in fields.items() if name in names}
    values = [*keys.values()]
    rows = [one for one in read(table) if [getattr(one, name) for name in keys] == values]
    if len(rows) > 1:
        raise ValueError(f"table {table} has {len(rows)} numbers with {keys}: give more fields.")
    return rows[0] if rows else None


def datasets(table: int) -> list[str]:
    """Data sets of a table, in printed order."""
    return list(dict.fromkeys(one.dataset for one in read(table)))


@cache
def _columns(table: int) -> Sequence[str]:
    first = read(table)[0]
    return [f.name for f in fields(PublishedRow) if getattr(first, f.name) is not None]
