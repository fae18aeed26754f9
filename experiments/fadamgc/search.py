"""Search of step sizes with the same grid and budget for every method.

In the grid, eta_l and eta_g are powers of 10. All pairs run for a few rounds, and the best of them
run again for more rounds; the pair with the best accuracy in this second pass is chosen. Accuracy
is measured on held-out training samples, never on test samples. It is averaged over the second half
of a run, because with few heterogeneous clients per round the accuracy of single rounds varies by
ten points.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.fadamgc.methods import METHODS, SETTINGS, with_tracking
from experiments.runs import Planned, Store
from wirelessfl.base.rows import as_mean_value
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import EDGE, at_edge, markdown, rank_of, with_edge
from wirelessfl.results.selection import NAMES


class Pair(NamedTuple):
    """Step sizes of the clients and of the server."""

    lr: float
    server_lr: float


class StepSearch(NamedTuple):
    """Grid and numbers of rounds of the search.

    Args:
        common: settings shared by all runs.
        pairs: the grid.
        rounds: rounds of the first and of the second pass.
        kept: number of pairs in the second pass.
    """

    common: dict[str, Any]
    pairs: list[Pair]
    rounds: tuple[int, int]
    kept: int

    @classmethod
    def load(cls, scale: str, data_dir: Path | None = None) -> StepSearch:
        """Load the search of ``settings/search.toml`` at a scale."""
        text = tomllib.loads((SETTINGS / "search.toml").read_text(encoding="utf-8"))
        settings = text["scale"][scale]
        grid = {name: settings.pop(name, text["grid"][name]) for name in ("lr", "server_lr")}
        first, second, kept = (settings.pop(name) for name in ("first", "second", "kept"))
        if data_dir is not None:
            settings["data_dir"] = data_dir
        pairs = [Pair(*pair) for pair in itertools.product(grid["lr"], grid["server_lr"])]
        return cls(text["settings"] | settings, pairs, (first, second), kept)

    def config(self, method: str, pair: Pair, rounds: int) -> Config:
        """The configuration of one run of the search."""
        flags = with_tracking(self.common | {"algorithm": method})
        flags |= pair._asdict() | {"rounds": rounds}
        return Config.from_flags(**flags)

    def run(self, store: Store, *, jobs: int, ray: str | None) -> None:
        """Run the missing runs: the first pass of all methods, then the second pass."""
        everything = [(m, p, self.rounds[0]) for m in METHODS for p in self.pairs]
        store.make(map(self._planned, everything), jobs=jobs, ray=ray)
        best = [(m, p, self.rounds[1]) for m in METHODS for p in self.best(store, m)]
        store.make(map(self._planned, best), jobs=jobs, ray=ray)

    def _planned(self, trial: tuple[str, Pair, int]) -> Planned:
        method, pair, rounds = trial
        label = f"{NAMES[method]}, {pair.lr:g}, {pair.server_lr:g}, {rounds} rounds"
        return Planned(label, self.config(*trial))

    def scores(self, store: Store, method: str, rounds: int) -> dict[Pair, float]:
        """Accuracy of each finished pair, best first; ties in the order of the grid."""
        by_pair = {
            pair: score(run)
            for pair in self.pairs
            for run in store.found(self.config(method, pair, rounds))
        }
        return dict(sorted(by_pair.items(), key=lambda item: -item[1]))

    def best(self, store: Store, method: str) -> list[Pair]:
        """The pairs of the second pass."""
        return list(self.scores(store, method, self.rounds[0]))[: self.kept]

    def chosen(self, store: Store) -> dict[str, Pair]:
        """The best pair of each method whose search is finished."""
        finals = {method: self.scores(store, method, self.rounds[1]) for method in METHODS}
        return {method: next(iter(scores)) for method, scores in finals.items() if scores}


def score(run: StoredRun) -> float:
    """Mean validation accuracy over the second half of the rows; see ``rank_of``."""
    accuracies = [as_mean_value(row, "validation_accuracy") for row in run.rows]
    return rank_of(accuracies[len(accuracies) // 2 :])


def pair_text(pair: Pair, tried: Sequence[Pair]) -> str:
    """The best pair eta_l / eta_g of those tried, marked where it is at the edge of their grid."""
    columns = zip(pair, *tried, strict=True)
    return " / ".join(with_edge(f"{best:g}", best, values) for best, *values in columns)


def search_table(search: StepSearch, store: Store) -> str:
    """One row per method: the pairs eta_l / eta_g of the second pass with accuracy in percent."""
    rows = []
    for method in METHODS:
        scores = search.scores(store, method, search.rounds[1])
        shown = [f"{p.lr:g} / {p.server_lr:g}: {score_text(a)}" for p, a in scores.items()]
        if scores:
            best = next(iter(scores))
            shown[0] = f"{pair_text(best, search.pairs)}: {score_text(scores[best])}"
        rows.append([NAMES[method], *shown, *["-"] * (search.kept - len(shown))])
    ranks = [f"rank {rank}" for rank in range(1, search.kept + 1)]
    return markdown(["method", *ranks], rows)


def score_text(score: float) -> str:
    """A score in percent."""
    return "diverged" if score == -math.inf else f"{100 * score:.1f}"


def rates_lines(search: StepSearch, store: Store) -> str:
    """The chosen pairs as lines for ``settings/rates.toml``, with a comment at the grid's edge."""
    lines = []
    for method, pair in search.chosen(store).items():
        edges = (at_edge(*axis) for axis in zip(pair, zip(*search.pairs, strict=True), strict=True))
        comment = f"  # {EDGE}" if any(edges) else ""
        lines.append(f"{method} = [{pair.lr:g}, {pair.server_lr:g}]{comment}\n")
    return "".join(lines)
