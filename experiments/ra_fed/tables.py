"""Tables of RA-Fed's studies: accuracies by width, coverage, and costs over the radio."""

from __future__ import annotations

import math
import statistics

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
    "deviation over the seeds."
)
FULL = "FedAvg with the full model: {} %."
DIVERGED = f"{DAGGER}: a seed diverged, or ended {DROP:g} points or more below its best one."
BEST = "Best accuracy: maximum over the evaluations, mean over the seeds.\n\n"
COVERAGE = (
    "Γ* of coordinates: minimum number of clients per covered coordinate over the rounds that have "
    "a row. S β and the required coverage count clients per neuron; a weight between two hidden "
    "layers is covered only by clients that hold the neurons at both its ends.\n\n"
)


def accuracies(results: Results) -> str:
    """Every case with its traffic."""
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
    return f"{FINAL} {BEST}{COVERAGE}{markdown(head, rows)}"


def core(results: Results) -> str:
    """Final accuracies of the study's first setting, with one column per method."""
    first = results.study.cases[0]
    cases = results.where(**{key: first[key] for key in SAME})
    full = [case for case in cases if case["algorithm"] == REFERENCE]
    some = sorted((case for case in cases if case not in full), key=case_order)
    methods = [method for method in METHODS if any(c["algorithm"] == method for c in some)]
    rows = []
    for affordable in dict.fromkeys(map(share, some)):
        by_method = {c["algorithm"]: c for c in some if share(c) == affordable}
        shown = [_shown(results, by_method[m]) if m in by_method else "" for m in methods]
        rows.append([affordable, *shown])
    sentences = [FINAL, *(FULL.format(_shown(results, case)) for case in full)]
    if any(DAGGER in cell for row in rows for cell in row):
        sentences.append(DIVERGED)
    table = markdown(["width", *(NAMES[m] for m in methods)], rows)
    return f"{' '.join(sentences)}\n\n{table}"


def _shown(results: Results, case: Case) -> str:
    return spread(results.finals(case)) + f" {DAGGER}" * bool(diverged(results, case))


def numbers(results: Results) -> dict[str, str]:
    """The gains of RA-Fed and RAM-Fed in the study of widths, by name on the page."""
    texts = {}
    for method in OURS:
        for others in (OTHERS, OTHERS[1:], OTHERS[2:]):
            values = [gain for _, gain in gains(results, method, others)]
            name = f"{method} over {', '.join(others)}"
            texts[f"{name}: ahead"] = f"{sum(value > 0 for value in values)} of {len(values)}"
            texts[f"{name}: median"] = f"{statistics.median(values):+.1f}"
        of_best = gains(results, method)
        for width in dict.fromkeys(share(case) for case, _ in of_best):
            values = [gain for case, gain in of_best if share(case) == width]
            texts[f"{method}, {width}"] = f"{statistics.median(values):+.1f}"
        finite = [gain for _, gain in of_best if math.isfinite(gain)]
        texts[f"{method}, least"] = f"{min(finite):+.1f}"
        texts[f"{method}, most"] = f"{max(gain for _, gain in of_best):+.1f}"
    return texts


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
    return f"{FINAL} {BEST}{COVERAGE}{markdown(head, rows)}"


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
    return f"{FINAL} {BEST}{COVERAGE}{markdown(head, rows)}"
