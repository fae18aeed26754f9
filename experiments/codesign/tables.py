"""Tables of the study of predictions: criteria, designs, other methods, and where errors are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from experiments.codesign.curves import CURVE, LUO
from experiments.codesign.samples import (
    BEST_PILOT,
    DESIGN,
    FEDTUNE,
    FIXED_PAIR,
    JOULES,
    SECONDS,
    SWEEP,
    Chosen,
    Design,
    Sample,
    chosen,
    later,
    median,
    samples,
)
from experiments.codesign.searches import GUIDED, TPE
from experiments.codesign.stored import Found
from experiments.codesign.sweep import CRITERIA, TARGETS, reached
from experiments.decided.uplinks import shown
from wirelessfl.results.costs import MISSING, cost_text, markdown
from wirelessfl.results.selection import DATA, NAMES

METHODS = (SWEEP, DESIGN, BEST_PILOT, LUO, GUIDED, TPE, FEDTUNE, FIXED_PAIR)


def criteria(record: Found) -> str:
    """Each criterion of ``criteria.toml`` with its value over all samples."""
    every = samples(record)
    rows = [
        _row("predicted, seconds", _errors(every, SECONDS), "predicted"),
        _row("predicted, joules", _errors(every, JOULES), "predicted"),
        _row("regret", [one.design().regret() for one in every], "regret"),
        _row("fixed", [saved(one) for one in every], "fixed"),
    ]
    for method in (GUIDED, TPE, LUO, FEDTUNE):
        ratios = [r for r in (against(one, method) for one in every) if not math.isnan(r)]
        rows.append(_row(f"baselines, {method}", ratios, "baselines"))
    head = ["criterion", "measure", "aim", "median", "quartiles", "samples", "holds"]
    return markdown(head, rows)


def _errors(every: Iterable[Sample], objective: str) -> list[float]:
    return [one.design().error(objective) for one in every]


def saved(sample: Sample) -> float:
    """1 - seconds of the design / seconds of the best of the papers' fixed settings.

    1 if the design reaches the target and no fixed setting does; minus infinity if the design alone
    does not.
    """
    mine, other = sample.design().realised.seconds, min(sample.fixed().values())
    if math.isinf(mine):
        return 0.0 if math.isinf(other) else -math.inf
    return 1 - mine / other


def against(sample: Sample, method: str) -> float:
    """Seconds of the design relative to the mean seconds of a method's choices; NaN without."""
    of = {one.method: one for one in chosen(sample)}
    if method not in of:
        return math.nan
    mine, other = sample.design().realised.seconds, statistics.mean(of[method].seconds)
    if math.isinf(mine):
        return 1.0 if math.isinf(other) else math.inf
    return mine / other


def _row(name: str, values: Sequence[float], criterion: str) -> list[str]:
    stated = CRITERIA[criterion]
    tests: dict[str, Callable[[float, float], bool]] = {
        "at_most": lambda value, limit: value <= limit,
        "at_least": lambda value, limit: value >= limit,
        "below": lambda value, limit: value < limit,
    }
    ((key, test),) = ((key, test) for key, test in tests.items() if key in stated)
    aim = f"{key.replace('_', ' ')} {stated[key]:g}"
    value = median(values)
    measure = stated["measure"].replace("|", "\\|")
    holds = "-" if math.isnan(value) else "yes" if test(value, stated[key]) else "no"
    return [name, measure, aim, f"{value:.3g}", quartiles(values), str(len(values)), holds]


def quartiles(values: Sequence[float]) -> str:
    """The first and third of their quartiles, of numbers that may be infinite."""
    if len(values) < 2:
        return "-"
    ordered = sorted(values)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.25, 0.75))
    return f"{_shown(low)} to {_shown(high)}"


def _shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    return MISSING if math.isinf(value) else f"{value:.3g}" if value >= 100 else f"{value:.2g}"


def designs(record: Found) -> str:
    """One row per data set and network: designs, predicted and realised, over all seeds."""
    head = ["data, target", "network", "seeds", "design: algorithm, uplink, (H, E)"]
    head += ["predicted s", "realised s", "best of the sweep, s", "best fixed setting, s"]
    head += ["predicted J", "realised J"]
    rows = []
    for (dataset, network), mine in _grouped(record).items():
        made = [one.design() for one in mine]
        rows.append(
            [
                f"{DATA[dataset]}, {100 * TARGETS[dataset]:g} %",
                network,
                str(len(mine)),
                _designs(made),
                _mean([d.predicted.seconds for d in made]),
                _mean([d.realised.seconds for d in made]),
                _mean([min(reached(d.sweep.seconds)) for d in made]),
                _mean([min(one.fixed().values()) for one in mine]),
                _mean([d.predicted.joules for d in made]),
                _mean([d.realised.joules for d in made]),
            ]
        )
    return markdown(head, rows)


def _designs(made: Sequence[Design]) -> str:
    """The distinct designs, by seed."""
    shared = dict.fromkeys((d.sweep.algorithm, d.sweep.uplink) for d in made)
    parts = []
    for algorithm, uplink in shared:
        pairs = [d.pair for d in made if (d.sweep.algorithm, d.sweep.uplink) == (algorithm, uplink)]
        parts.append(f"{NAMES[algorithm]}, {shown(uplink)}, {' '.join(map(str, pairs))}")
    return "; ".join(parts)


def _mean(values: Sequence[float]) -> str:
    """Their mean; a bound if some are infinite, with the number of the others."""
    finite = [value if math.isfinite(value) else None for value in values]
    return cost_text(finite, ".3g") if None in finite else f"{statistics.mean(values):.3g}"


def _grouped(record: Found) -> dict[tuple[str, str], list[Sample]]:
    groups: dict[tuple[str, str], list[Sample]] = {}
    for one in samples(record):
        groups.setdefault((one.dataset, one.network), []).append(one)
    return groups


def excess(record: Found) -> dict[str, list[float]]:
    """Seconds relative to the best of the sweep, minus 1, by method, one per sample.

    Of random choices, it is the mean.
    """
    by_method: dict[str, list[float]] = {}
    for sample in samples(record):
        for one in chosen(sample):
            least = min(reached(sample.design().sweep.seconds))
            value = statistics.mean(one.seconds) / least - 1
            by_method.setdefault(one.method, []).append(value)
    return {method: by_method[method] for method in METHODS if method in by_method}


def transferred(record: Found) -> dict[str, list[float]]:
    """Seconds relative to the best pair, minus 1, in runs with other seeds, by method.

    The choices are those of a sample, and the best pair is that of the mean over the other runs.
    """
    by_method: dict[str, list[float]] = {}
    for sample in samples(record):
        seconds = sample.elsewhere(sample.design().sweep)
        least = min(seconds)
        for one in chosen(sample):
            if one.places and math.isfinite(least):
                mean = statistics.mean(seconds[place] for place in one.places)
                by_method.setdefault(one.method, []).append(mean / least - 1)
    return by_method


def methods(record: Found) -> str:
    """One row per method: how far from the best of the sweep, and after how many trainings."""
    every: dict[str, list[Chosen]] = {}
    ratios: dict[str, list[float]] = {}
    for sample in samples(record):
        for one in chosen(sample):
            every.setdefault(one.method, []).append(one)
            ratios.setdefault(one.method, []).append(against(sample, one.method))
    head = ["choice of (H, E)", "trainings", "s of training", "above the sweep's best (%)"]
    head += ["quartiles", "largest", "with other seeds (%)", "design / this one", "samples"]
    moved = transferred(record)
    rows = []
    for method, values in excess(record).items():
        percent = [100 * value for value in values]
        rows.append(
            [
                _title(method),
                str(every[method][0].trainings),
                f"{median([one.cpu_seconds for one in every[method]]):.3g}",
                _shown(median(percent)),
                quartiles(percent),
                _shown(max(percent)),
                _shown(100 * median(moved.get(method, []))),
                f"{median(ratios[method]):.3g}",
                str(len(percent)),
            ]
        )
    return markdown(head, rows)


def _title(method: str) -> str:
    titles = {
        SWEEP: "exhaustive sweep",
        DESIGN: "design: curve of 8 pilots",
        FEDTUNE: "FedTune, from H = 20, E = 5",
        BEST_PILOT: "soonest of the same 8 pilots",
        LUO: "Luo et al., INFOCOM 2021, with the same pilots",
        TPE: "Optuna, TPE (its first 10 trials are random)",
        GUIDED: "Optuna, TPE after 4 random trials",
        FIXED_PAIR: "H = 20, E = 5 over the design's uplink",
    }
    return titles[method]


def errors(record: Found) -> str:
    """Where errors come from: rounds of the curve, costs of a round, and noise of the training."""
    every = samples(record)
    made = [one.design() for one in every]
    piloted = [
        d.place in s.curves[d.sweep.algorithm, CURVE].pilots
        for d, s in zip(made, every, strict=True)
    ]
    parts: list[tuple[str, list[float]]] = []
    for algorithm in ("hist", "hfedavg"):
        for at_pilot in (True, False):
            values = curve_errors(record, algorithm, at_pilot)
            where = "its pilots" if at_pilot else "other pairs"
            parts.append((f"rounds of the curve, {NAMES[algorithm]}, at {where}", values))
    rounds = [_rounds_error(one, d) for one, d in zip(every, made, strict=True)]
    parts.append(("rounds of the curve, at the designs", rounds))
    deviations = [abs(_per_round(d) - 1) for d in made]
    parts.append(("seconds of a round, at the designs", deviations))
    parts.append(("rounds of another seed at the same pair", later(record.trained)))
    head = ["what differs", "median error (%)", "quartiles", "number"]
    rows = [
        [name, f"{100 * median(v):.3g}", quartiles([100 * x for x in v]), str(len(v))]
        for name, v in parts
        if v
    ]
    found_at = f"{sum(piloted)} of {len(made)} designs have the pair of a pilot."
    return f"{found_at}\n\n{markdown(head, rows)}"


def _per_round(design: Design) -> float:
    """Expected seconds of a round relative to those of the run's rounds."""
    rounds = reached(design.sweep.rounds)[design.place]
    expected = reached(design.sweep.round_seconds)[design.place]
    return expected * rounds / design.realised.seconds


def _rounds_error(sample: Sample, design: Design) -> float:
    predicted = reached(sample.curves[design.sweep.algorithm, CURVE].rounds)[design.place]
    return abs(predicted / reached(design.sweep.rounds)[design.place] - 1)


def curve_errors(record: Found, algorithm: str, at_pilots: bool) -> list[float]:
    """|predicted / realised rounds - 1| of the curves of an algorithm."""
    by_place = {one[:3]: one for one in record.trained}
    return [
        abs(predicted / real - 1)
        for curve in record.curves
        if curve.method == CURVE and curve.algorithm == algorithm and by_place[curve[:3]].complete
        for place, (predicted, real) in enumerate(
            zip(curve.rounds, by_place[curve[:3]].rounds, strict=True)
        )
        if (place in curve.pilots) == at_pilots and real is not None and predicted is not None
    ]
