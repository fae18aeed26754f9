"""Tables 1 to 14 from finished runs, with the paper's numbers for comparison."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from experiments.dynamic_clients import published
from experiments.dynamic_clients.measures import SAME, after, after_by_seed, last
from experiments.dynamic_clients.methods import SHOWN, per_session
from experiments.evidence import mean_by_seed
from experiments.studies import Case, Results
from wirelessfl.results.costs import markdown, spread
from wirelessfl.results.selection import DATA, MODELS, NAMES, value_text

MEANS = (
    "Mean accuracy of the first ten rounds after a transition, in percent, ± the sample standard "
    "deviation over the seeds.\n"
)
PRINTED = (
    "In parentheses: the values of the paper's Table {table}; for data sets that it lacks, those "
    "of {first}.\n"
)


def comparison(results: Results, table: int | None = None, numbers: Sequence[int] = (1, 2)) -> str:
    """Tables 1 to 11: one row per setting, algorithm and transition, one column per warm start.

    Args:
        results: the runs of the study.
        table: number of the paper's table; None for no published values.
        numbers: numbers of the transitions.
    """
    starts = [s for s in SHOWN if s in results.values("warm_start")]
    groups: dict[tuple[object, ...], dict[str, Case]] = {}
    for case in results.where():
        key = tuple(case[name] for name in SAME)
        groups.setdefault(key, {})[case["warm_start"]] = case
    head = ["data, clients", "labels", "algorithm", "transition", "seeds"]
    rows = []
    for by_start in groups.values():
        case = next(iter(by_start.values()))
        for number in numbers:
            ours = {start: after(results, one, number) for start, one in by_start.items()}
            cells = {
                start: _cell(ours[start], paper_of(table, one, number))
                for start, one in by_start.items()
            }
            rows.append(
                [
                    _data(case),
                    _labels(case),
                    _method(case, results),
                    str(number),
                    str(max(map(len, ours.values()))),
                    *(cells.get(start, "-") for start in starts),
                ]
            )
    return _about(table) + markdown([*head, *(SHOWN[s] for s in starts)], rows)


def paper_of(table: int | None, case: Case, number: int) -> published.PublishedRow | None:
    """The paper's number after a transition, of its first data set if it lacks the case's."""
    if table is None:
        return None
    sets = published.datasets(table)
    return published.find(
        table,
        dataset=case["dataset"] if case["dataset"] in sets else sets[0],
        algorithm=case["algorithm"],
        warm_start=case["warm_start"],
        transition=number,
        overlap=case["overlap"],
        alpha=case["alpha"],
        distribution=case["split"],
        similarity_scale=case["similarity_scale"],
    )


def variants(
    results: Results, table: int | None = None, numbers: Sequence[int] | None = (1, 2, 3)
) -> str:
    """Tables 12 to 14 and ablations: one row per variant, with its cost.

    Args:
        results: the runs of the study.
        table: number of the paper's table; None for no published values.
        numbers: numbers of the transitions; None for the last one.
    """
    cases = results.where()
    shown = numbers or ((last(cases[0]),) if cases else ())
    head = ["data, clients", "labels", "algorithm", "variant", "seeds"]
    head += [f"transition {n}" for n in shown]
    head += ["extra rounds", "extra uploads", "extra MiB per client", "stored MiB"]
    rows = []
    for case in cases:
        ends = [rows[-1] for rows in results.rows(case)]
        means = [statistics.mean(float(end[name]) for end in ends) for name in COSTS]
        stored = max(row["stored_bytes"] for rows in results.rows(case) for row in rows)
        rows.append(
            [
                _data(case),
                _labels(case),
                NAMES[case["algorithm"]],
                variant(case),
                str(len(ends)),
                *(_cell(after(results, case, n), paper_of(table, case, n)) for n in shown),
                *(f"{mean:.{places}f}" for mean, places in zip(means, (0, 0, 2), strict=True)),
                f"{stored / 2**20:.2f}",
            ]
        )
    return _about(table) + markdown(head, rows)


def momenta(results: Results) -> str:
    """Study ``momentum`` for the page: settings with all warm starts, over two transitions."""
    starts = [start for start in SHOWN if start in results.values("warm_start")]
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for case in results.where():
        means = mean_by_seed([after_by_seed(results, case, number) for number in (1, 2)])
        key = f"{MODELS[case['model']]}, Dir({case['alpha']:g})", case["server_momentum"]
        groups.setdefault(key, {})[case["warm_start"]] = spread([*means.values()])
    about = "Accuracy on MNIST over the first ten rounds, in percent.\n\n"
    rows = [[*key, *(one[s] for s in starts)] for key, one in groups.items() if {*starts} <= {*one}]
    return about + markdown(["model", "momentum", *(SHOWN[s] for s in starts)], rows)


COSTS = ("extra_rounds", "extra_uploads", "extra_mib")


def variant(case: Case) -> str:
    """A warm start and the settings that distinguish it."""
    text = [SHOWN[case["warm_start"]]]
    if case["similarity"] not in (None, "two_norm"):
        text.append(case["similarity"].replace("_", " "))
    if case["similarity_scale"] is not None:
        text.append(f"R = {case['similarity_scale']:g}")
    if case["trial_rounds"] not in (None, 1):
        text.append(f"V = {case['trial_rounds']}")
    if case["history"] is not None:
        text.append(f"H = {case['history']} ({case['history_keep']})")
    if case["distillation"] not in (None, "csrd"):
        text.append(case["distillation"])
    return ", ".join(text)


def _data(case: Case) -> str:
    model = f" ({case['model']})"
    return f"{DATA[case['dataset']]}{model}, {per_session(case.settings)}"


def _method(case: Case, results: Results) -> str:
    """The algorithm, with its step size and momenta if the study varies them."""
    same = [one for one in results.study.cases if one["algorithm"] == case["algorithm"]]
    shown = {"lr": "step size", "momentum": "momentum", "server_momentum": "server momentum"}
    varied = [
        name
        for name in shown
        if len({(c["dataset"], c[name]) for c in same}) > len({c["dataset"] for c in same})
    ]
    return ", ".join(
        [NAMES[case["algorithm"]], *(f"{shown[n]} {value_text(case[n])}" for n in varied)]
    )


def _labels(case: Case) -> str:
    unseen = f", {case['unseen_labels']} unseen labels" if case["unseen_labels"] else ""
    dealt = f"Dir({case['alpha']:g})" if case["alpha"] is not None else case["split"]
    return f"overlap {case['overlap']:g}, {dealt}{unseen}"


def _cell(ours: Sequence[float], paper: published.PublishedRow | None) -> str:
    if paper is None:
        return spread(ours)
    std = "" if paper.std is None else f" ± {paper.std:.1f}"
    return f"{spread(ours)} ({paper.mean:.1f}{std})"


def _about(table: int | None) -> str:
    """What the cells of a table show."""
    if table is None:
        return f"{MEANS}\n"
    first = DATA[published.datasets(table)[0]]
    return f"{MEANS}{PRINTED.format(table=table, first=first)}\n"
