"""The findings of the page, in sentences with their numbers, from stored rows and numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.codesign import designs, tables
from experiments.codesign.choices import JOULES, SECONDS, Sample, median, samples
from experiments.codesign.curves import CURVE, LUO
from experiments.codesign.grid import STEPS
from experiments.codesign.searches import GUIDED
from experiments.codesign.stored import Found
from experiments.codesign.sweep import reached
from experiments.studies import Results
from wirelessfl.results.names import DATA, NAMES


def findings(found: Found, made: Results) -> str:
    """One paragraph per finding.

    Args:
        found: numbers of the study of predictions.
        made: runs of the designs off the grid.
    """
    every = samples(found)
    parts = [
        _hold(every, made),
        _fixed(every),
        _chosen(every),
        _others(every),
        _tuned(every),
        _luck(found),
        tables.why(found),
    ]
    return "\n\n".join(f"- {part}" for part in parts) + "\n"


def _hold(every: Sequence[Sample], made: Results) -> str:
    seconds, joules = (
        _percent([one.design().error(objective) for one in every])
        for objective in (SECONDS, JOULES)
    )
    sets = ", ".join(DATA[name] for name in dict.fromkeys(one.dataset for one in every))
    text = (
        f"Predictions hold in the median. Over {len(every)} designs ({sets}; three networks, three "
        f"seeds), predicted seconds to the target differ from the realised ones by {seconds}, and "
        f"joules of the same designs by {joules}."
    )
    lost = [one for one in every if math.isinf(one.design().realised.seconds)]
    if lost:
        text += (
            f" {len(lost)} designs, of {_sets(lost)}, have no realised cost: the curve predicts "
            f"{_needed(lost)} rounds, and the stored runs end after {STEPS['small']} local steps "
            f"({_lengths(lost)} rounds). They count as errors of 100 %."
        )
    return f"{text} Designs off the grid have longer runs: {designs.summary(_realised(made))}"


def _realised(made: Results) -> list[tuple[designs.Made, Mapping[str, Any] | None]]:
    return designs.realised(made, designs.load())


def _sets(some: Sequence[Sample]) -> str:
    return " and ".join(DATA[name] for name in dict.fromkeys(one.dataset for one in some))


def _needed(some: Sequence[Sample]) -> str:
    """Rounds to the target that the curves predict."""
    rounds = []
    for one in some:
        design = one.design()
        rounds += reached([one.curves[design.sweep.algorithm, CURVE].rounds[design.place]])
    return f"{min(rounds):.0f} to {max(rounds):.0f}"


def _lengths(some: Sequence[Sample]) -> str:
    """Rounds of their stored runs."""
    made = [(one, one.design()) for one in some]
    rounds = [one.trained[d.sweep.algorithm].lengths[d.place] or 0 for one, d in made]
    return f"{min(rounds)} to {max(rounds)}"


def _fixed(every: Sequence[Sample]) -> str:
    ends = [
        (math.isfinite(one.design().realised.seconds), math.isfinite(min(one.fixed().values())))
        for one in every
    ]
    ours, theirs, none = (ends.count(who) for who in ((True, False), (False, True), (False, False)))
    return (
        f"A design takes {_percent([tables.saved(one) for one in every])} less time than the best "
        "of the papers' fixed settings: H = 20 local steps and E = 5 edge rounds over TDMA or "
        f"OFDMA with equal bandwidth. Only the design reaches the target in {ours} of {len(every)} "
        f"samples, only a fixed setting in {theirs}, and neither in {none}."
    )


def _chosen(every: Sequence[Sample]) -> str:
    made = [one.design() for one in every]
    ways = {(NAMES[d.sweep.algorithm], d.sweep.uplink) for d in made}
    once = sum(d.pair[1] == 1 for d in made)
    long = sum(d.pair[0] >= 20 for d in made)
    ((algorithm, uplink), *more) = ways
    same = (
        f"All designs choose {algorithm} over {tables.shown(uplink)}"
        if not more
        else f"Designs choose {len(ways)} combinations of algorithm and uplink"
    )
    return (
        f"{same}. {once} of {len(made)} choose one edge round per global round, where the papers "
        f"have 5, and {long} choose 20 or more local steps."
    )


def _others(every: Sequence[Sample]) -> str:
    luo, guided = (_ratios(every, method) for method in (LUO, GUIDED))
    return (
        "A design is no better than two other methods with as many trainings. Over the same "
        f"uplink, its seconds are {luo} times those of the bound of Luo et al. with the same "
        f"pilots, and {guided} times those of Optuna's guided sampler. But the pilots serve all "
        "networks, uplinks and objectives, and Optuna starts again for each."
    )


def _tuned(every: Sequence[Sample]) -> str:
    ratios = _ratios(every, tables.FEDTUNE)
    return (
        f"Against FedTune, which tunes H and E within its only training, the ratio is {ratios}; "
        "FedTune trains once, and the design has 8 pilots."
    )


def _ratios(every: Sequence[Sample], method: str) -> str:
    values = [tables.against(one, method) for one in every]
    known = [value for value in values if not math.isnan(value)]
    return f"{median(known):.2f} (quartiles {tables.quartiles(known)}, {len(known)} samples)"


def _luck(found: Found) -> str:
    moved = {name: 100 * median(values) for name, values in tables.transferred(found).items()}
    return (
        "The best pair of one training is partly luck. With other seeds, the pair that the "
        f"exhaustive sweep of 20 trainings finds takes {moved[tables.SWEEP]:.0f} % longer than the "
        f"best pair there, and that of Optuna {moved[GUIDED]:.0f} %; that of the design takes "
        f"{moved[tables.DESIGN]:.0f} %, and so does the soonest of its 8 pilots "
        f"({moved[tables.BEST_PILOT]:.0f} %; medians)."
    )


def _percent(values: Sequence[float]) -> str:
    """Their median and quartiles, in percent."""
    percent = [100 * value for value in values]
    return f"{statistics.median(percent):.2g} % (quartiles {tables.quartiles(percent)})"
