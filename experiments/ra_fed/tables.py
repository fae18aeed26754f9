"""Tables of finished runs as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from experiments.ra_fed.measures import (
    DAGGER,
    DROP,
    SAME,
    best,
    coverage_of,
    diverged,
    gains,
    in_order,
    panels,
    round_seconds,
)
from experiments.ra_fed.methods import (
    METHODS,
    OTHERS,
    OURS,
    REFERENCE,
    TARGETS,
    case_order,
    name_of,
    setting_of,
    share,
)
from experiments.studies import Case, Results
from wirelessfl.results.costs import LAST, markdown, reached, spread
from wirelessfl.results.selection import NAMES

FINAL = (
    f"Final accuracy: mean of the last {LAST} evaluations in percent, ± the sample standard "
    "deviation over the seeds. Best accuracy: maximum over the evaluations, mean over the "
    "seeds.\n\n"
)
COVERAGE = (
    "Γ* of coordinates: minimum number of clients per covered coordinate over the rounds that have "
    "a row. S β and the required coverage count clients per neuron; a weight between two hidden "
    "layers is covered only by clients that hold the neurons at both its ends.\n\n"
)


def accuracies(results: Results) -> str:
    """Every case with its traffic, and the gains of RA-Fed and RAM-Fed."""
    head = ["data, split, model", "capacity", "method", "lr", "seeds"]
    head += [
        "final accuracy (%)",
        "best (%)",
        "Γ* of coordinates",
        "uncovered (%)",
        "uplink MiB per client",
    ]
    rows = []
    for cases in panels(results).values():
        for affordable in dict.fromkeys(share(case) for case in cases):
            for case in in_order([case for case in cases if share(case) == affordable]):
                ends = [rows[-1]["uplink_mib"] for rows in results.rows(case)]
                rows.append(
                    [
                        setting_of(case),
                        affordable,
                        NAMES[case["algorithm"]],
                        f"{case['lr']:g}",
                        str(len(ends)),
                        spread(results.finals(case)),
                        f"{best(results, case):.1f}",
                        *_covered(results, case),
                        f"{statistics.mean(ends):.2f}",
                    ]
                )
    return FINAL + COVERAGE + markdown(head, rows) + claims(results)


def core(results: Results) -> str:
    """Final accuracies of the study's first setting, with one column per method."""
    first = results.study.cases[0]
    cases = [case for case in results.where() if all(case[k] == first[k] for k in SAME)]
    full = [case for case in cases if case["algorithm"] == REFERENCE]
    some = sorted((case for case in cases if case not in full), key=case_order)
    methods = [method for method in METHODS if any(c["algorithm"] == method for c in some)]
    rows = []
    for affordable in dict.fromkeys(map(share, some)):
        by_method = {c["algorithm"]: c for c in some if share(c) == affordable}
        shown = [_shown(results, by_method[m]) if m in by_method else "" for m in methods]
        rows.append([affordable, *shown])
    text = FINAL.partition(" Best")[0]
    if full:
        text += f" FedAvg with the full model: {_shown(results, full[0])} %."
    if any(DAGGER in cell for row in rows for cell in row):
        text += f" {DAGGER}: a seed diverged, or ended {DROP:g} points or more below its best one."
    return f"{text}\n\n{markdown(['width', *(NAMES[m] for m in methods)], rows)}"


def _shown(results: Results, case: Case) -> str:
    return spread(results.finals(case)) + f" {DAGGER}" * bool(diverged(results, case))


def claims(results: Results) -> str:
    """Gains of RA-Fed and RAM-Fed over other methods; differences from FedAvg's full model."""
    text = []
    for method in OURS:
        for others in (OTHERS, *((other,) for other in OTHERS)):
            text += filter(None, [_over(results, method, others)])
    for method in (*OURS, *OTHERS):
        cases = [c for c in results.where(algorithm=method) if c["budget"] == "bytes"]
        text += [line for case in cases if (line := _behind(results, case))]
    return "".join(f"\n{line}\n" for line in text)


def _over(results: Results, method: str, others: Sequence[str]) -> str:
    """The gains of a method over others in one sentence; empty without common settings."""
    pairs = gains(results, method, others)
    return f"{NAMES[method]} over {_names(others)}: {_summary(pairs)}." if pairs else ""


def _names(others: Sequence[str]) -> str:
    names = [NAMES[other] for other in others]
    return names[0] if len(names) == 1 else f"the best of {', '.join(names[:-1])} and {names[-1]}"


def _summary(pairs: Sequence[tuple[Case, float]]) -> str:
    values = [gain for _, gain in pairs]
    ahead = sum(gain > 0 for gain in values)
    highest, lowest = max(pairs, key=lambda one: one[1]), min(pairs, key=lambda one: one[1])
    return (
        f"{statistics.mean(values):+.1f} points on average over {len(values)} settings, median "
        f"{statistics.median(values):+.1f}, "
        f"positive in {ahead}; maximum {highest[1]:+.1f} ({_where(highest[0])}), "
        f"minimum {lowest[1]:+.1f} ({_where(lowest[0])})"
    )


def _where(case: Case) -> str:
    return f"{setting_of(case)}, {share(case)}"


def _behind(results: Results, case: Case) -> str:
    """A case's accuracy minus that of FedAvg with the full model, over their common seeds."""
    panel = next(cases for cases in panels(results).values() if case in cases)
    full = next((other for other in panel if other["algorithm"] == REFERENCE), None)
    if full is None:
        return ""
    pairs = list(zip(results.finals(case), results.finals(full), strict=False))
    gaps = [mine - theirs for mine, theirs in pairs]
    return (
        f"{name_of(case)} minus FedAvg with the full model ({setting_of(case)}): {spread(gaps)} "
        f"points, {len(gaps)} seed{'' if len(gaps) == 1 else 's'}."
    )


def _covered(results: Results, case: Case) -> tuple[str, str]:
    reached = coverage_of(results, case)
    return ("-", "-") if reached is None else (str(reached[0]), f"{reached[1]:.1f}")


def covered(results: Results) -> str:
    """Required and measured Gamma*, and rounds to a target."""
    head = ["data, split, model", "clients per round, S", "β", "S β", "method", "masks", "seeds"]
    head += [
        "Γ* of coordinates",
        "uncovered (%)",
        "final accuracy (%)",
        "best (%)",
        "rounds to target",
    ]
    rows = []
    for case in sorted(results.where(), key=lambda c: (c["clients_per_round"], *c["capacities"])):
        target, beta = TARGETS[case["dataset"]], statistics.mean(case["capacities"])
        seeds = results.rows(case)
        rows.append(
            [
                f"{setting_of(case)}",
                str(case["clients_per_round"]),
                share(case) if len(case["capacities"]) > 1 else f"{beta:g}",
                f"{case['clients_per_round'] * beta:.3g}",
                NAMES[case["algorithm"]],
                case["masks"],
                str(len(seeds)),
                *_covered(results, case),
                spread(results.finals(case)),
                f"{best(results, case):.1f}",
                f"{reached(seeds, target, 'round', 'd')} ({100 * target:g} %)",
            ]
        )
    return (FINAL + COVERAGE) + markdown(head, rows)


def timed(results: Results) -> str:
    """Seconds and MiB to a target, and mean seconds per round."""
    head = ["data, split, model", "method", "capacity", "seeds", "seconds per round"]
    head += ["Γ* of coordinates"]
    head += ["uncovered (%)", "final accuracy (%)", "target (%)", "rounds to target"]
    head += ["seconds to target", "uplink MiB per client to target"]
    rows = []
    for case in results.where():
        seeds, target = results.rows(case), TARGETS[case["dataset"]]
        rounds = [round_seconds(rows, case["max_seconds"]) for rows in seeds]
        rows.append(
            [
                setting_of(case),
                name_of(case),
                share(case),
                str(len(seeds)),
                spread(rounds, places=2),
                *_covered(results, case),
                spread(results.finals(case)),
                f"{100 * target:g}",
                reached(seeds, target, "round", "d"),
                reached(seeds, target, "sim_seconds"),
                reached(seeds, target, "uplink_mib", ".2f"),
            ]
        )
    return FINAL + COVERAGE + markdown(head, rows)
