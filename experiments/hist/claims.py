"""Effects that test the HIST paper's claims, see ``claims.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from experiments.evidence import Evidence, by_seed, final
from experiments.hist.air import longest
from experiments.hist.figures import SPLITS, TARGET
from experiments.hist.measures import by_cap, costs, over_oma, sway, throughout
from experiments.studies import Results
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.intervals import (
    CostToTarget,
    Effect,
    contrast,
    difference,
    over_best,
    ratio,
)
from wirelessfl.results.selection import NAMES
from wirelessfl.runs.targets import cost_to


def less_traffic(
    evidence: Evidence,
    *,
    study: str,
    split: str,
    cells: Sequence[int],
    target: float,
    lr: float,
    least: float,
) -> list[Effect]:
    """MiB per client to the target (Fig. 3, 4): HFedAvg over HIST, for each number of cells.

    ``lr`` selects one of the step sizes if the study has several.
    """
    results, effects = evidence.study(study), []
    for n in cells:
        full, ours = (
            _sent(results, lr, target, split=split, algorithm=name, cells=n)
            for name in ("hfedavg", "hist")
        )
        effects.append(ratio(f"N = {n}", full, ours, least))
    return effects


def by_cells(
    evidence: Evidence,
    *,
    study: str,
    algorithm: str,
    split: str,
    cells: Sequence[int],
    target: float,
    lr: float,
    least: float,
    quantity: str = "uplink_mib",
) -> list[Effect]:
    """A cost to the target (Fig. 3, 4, 6c): that of the first number of cells over the second.

    ``lr`` selects one of the step sizes if the study has several.
    """
    results = evidence.study(study)
    more, less = (
        _sent(results, lr, target, quantity, algorithm=algorithm, split=split, cells=n)
        for n in cells
    )
    return [ratio("", more, less, least)]


def edge_periods(evidence: Evidence, *, split: str, least: float, rounds: int = 15) -> list[Effect]:
    """Global rounds to 80 % (Fig. 5): each number of edge rounds E over the next larger one."""
    results = evidence.study("fig5")
    cases = [case for case in results.study.cases if case["rounds"] == rounds]
    shared: dict[str, Any] = {"split": split, "rounds": rounds}
    shared["local_steps"] = min(case["local_steps"] for case in cases)
    values = sorted({c["edge_rounds"] for c in cases if c["local_steps"] == shared["local_steps"]})
    needed = {e: costs(results, "round", edge_rounds=e, **shared) for e in values}
    return [
        ratio(f"E = {few} / E = {many}", needed[few], needed[many], least)
        for few, many in pairwise(values)
    ]


def local_steps(
    evidence: Evidence, *, study: str, split: str, more: int, less: int, least: float
) -> list[Effect]:
    """Mean accuracy over all rounds (Fig. 5) with H = ``more`` minus that with ``less``."""
    results = evidence.study(study)
    edge_rounds = min(case["edge_rounds"] for case in results.study.cases)
    better, worse = (
        by_seed(results, throughout, split=split, local_steps=steps, edge_rounds=edge_rounds)
        for steps in (more, less)
    )
    return [difference("", better, worse, least)]


def table(
    evidence: Evidence,
    *,
    study: str,
    splits: Sequence[str],
    targets: Sequence[float],
    least: float,
) -> list[Effect]:
    """MiB per client to the targets (Tables I, II): HFedAvg over HIST, N = 2 and 4."""
    results, several = evidence.study(study), len(splits) > 1
    return [
        ratio(f"{SPLITS[split]}, " * several + f"{100 * target:g} %, N = {n}", full, ours, least)
        for split in splits
        for (target, n), (full, ours) in _sent_by_cells(results, split, targets).items()
    ]


def widening(
    evidence: Evidence,
    *,
    study: str,
    splits: Sequence[str],
    targets: Sequence[float],
    least: float,
) -> list[Effect]:
    """The ratio of ``table`` at N = 4 over that at N = 2."""
    effects = []
    for split in splits:
        sent = _sent_by_cells(evidence.study(study), split, targets)
        for target in targets:
            name = f"{SPLITS[split]}, {100 * target:g} %"
            effects.append(contrast(name, sent[target, 4], sent[target, 2], least))
    return effects


def _sent_by_cells(
    results: Results, split: str, targets: Sequence[float]
) -> dict[tuple[float, int], tuple[dict[int, CostToTarget], dict[int, CostToTarget]]]:
    """MiB per client of HFedAvg and HIST, by target and number of cells."""

    def sent(algorithm: str, target: float, n: int) -> dict[int, CostToTarget]:
        return costs(results, "uplink_mib", target, split=split, algorithm=algorithm, cells=n)

    return {
        (target, n): (sent("hfedavg", target, n), sent("hist", target, n))
        for target in targets
        for n in (2, 4)
    }


def mask_rounds(
    evidence: Evidence, *, slowdown: int, caps: Sequence[float], least: float
) -> list[Effect]:
    """Mean accuracy over all rounds (Fig. 6a): uniform - optimized masks, by cap.

    With ``slowdown`` s, half of the cells have 1/s of the speed and bandwidth.
    """
    uniform, optimized = by_cap(evidence.study("cap"), slowdown, caps, throughout)
    return [
        difference(f"cap {cap:g}" if len(caps) > 1 else "", uniform, optimized[cap], least)
        for cap in caps
    ]


def mask_seconds(evidence: Evidence, *, cells: Sequence[int], least: float) -> list[Effect]:
    """Seconds to 80 % (Fig. 6b, 6c): uniform over optimized masks."""
    results, effects = evidence.study("fig6"), []
    for n in cells:
        uniform, optimized = (
            costs(results, "sim_seconds", algorithm="hist", cells=n, mask_sizes=sizes)
            for sizes in ("uniform", "optimized")
        )
        effects.append(ratio(f"N = {n}", uniform, optimized, least))
    return effects


def uneven_mask_seconds(
    evidence: Evidence, *, slowdown: int, caps: Sequence[float], least: float
) -> list[Effect]:
    """Seconds to 80 %: uniform over optimized masks in cells that differ, see ``mask_rounds``."""

    def seconds(run: StoredRun) -> CostToTarget:
        return cost_to(run.rows, TARGET).of("sim_seconds")

    uniform, optimized = by_cap(evidence.study("cap"), slowdown, caps, seconds)
    return [ratio(f"cap {cap:g}", uniform, optimized[cap], least) for cap in caps]


def full_model_seconds(evidence: Evidence, *, cells: Sequence[int], least: float) -> list[Effect]:
    """Seconds to 80 % (Fig. 6b, 6c): HFedAvg over HIST with optimized masks."""
    results, effects = evidence.study("fig6"), []
    for n in cells:
        full = costs(results, "sim_seconds", algorithm="hfedavg", cells=n)
        ours = costs(results, "sim_seconds", algorithm="hist", cells=n, mask_sizes="optimized")
        effects.append(ratio(f"N = {n}", full, ours, least))
    return effects


def over_air(
    evidence: Evidence,
    *,
    snrs: Sequence[float],
    least: float,
    equal: bool = False,
    sizes: str | None = None,
) -> list[Effect]:
    """Accuracy in the last rounds (Fig. 7a): OMA - AirComp, by SNR.

    ``sizes`` are the masks over the air: ``optimized`` ones (36), or equal ones if left out.
    """
    results = evidence.study("fig7a")
    oma = by_seed(results, final, uplink="tdma")
    return [
        difference(
            f"{snr:g} dB",
            oma,
            by_seed(results, final, uplink="aircomp", snr_db=snr, mask_sizes=sizes),
            least,
            equal=equal,
        )
        for snr in snrs
    ]


def oscillation(
    evidence: Evidence, *, snr: float, least: float, sizes: str | None = None
) -> list[Effect]:
    """Standard deviation of the accuracy over the last rounds (Fig. 7a): AirComp - OMA."""
    results = evidence.study("fig7a")
    calm = by_seed(results, sway, uplink="tdma")
    noisy = by_seed(results, sway, uplink="aircomp", snr_db=snr, mask_sizes=sizes)
    return [difference("", noisy, calm, least)]


def fastest_over_air(
    evidence: Evidence, *, snrs: Sequence[float], least: float, sizes: str | None = None
) -> list[Effect]:
    """Seconds to 80 % (Fig. 7b): the fastest other scheme over HIST with AirComp, by SNR."""
    results, effects = evidence.study(("fig7b", "longer")), []
    for snr in snrs:
        others = {
            f"{NAMES[name]}, OMA": over_oma(results, name, snr) for name in ("hist", "hfedavg")
        }
        others[f"{NAMES['hfedavg']}, AirComp"] = _air_seconds(results, "hfedavg", snr)
        ours = _air_seconds(results, "hist", snr, sizes)
        effects.append(over_best(f"{snr:g} dB", others, ours, least))
    return effects


def falling_with_snr(
    evidence: Evidence,
    *,
    falls: Sequence[tuple[float, float]],
    least: float,
    sizes: str | None = None,
) -> list[Effect]:
    """Seconds to 80 % of HIST over the air (Fig. 7b) at the first over the second SNR."""
    results, effects = evidence.study(("fig7b", "longer")), []
    for low, high in falls:
        slow, fast = (_air_seconds(results, "hist", snr, sizes) for snr in (low, high))
        effects.append(ratio(f"{low:g} dB / {high:g} dB", slow, fast, least))
    return effects


def _air_seconds(
    results: Results, algorithm: str, snr: float, sizes: str | None = None
) -> dict[int, CostToTarget]:
    """Seconds to 80 % over the air, of the longest run of each seed."""
    settings: dict[str, Any] = {"algorithm": algorithm, "uplink": "aircomp"}
    settings |= {"snr_db": snr, "mask_sizes": sizes}
    return costs(longest(results), "sim_seconds", **settings)


def client_seconds(
    evidence: Evidence,
    *,
    uplink: str,
    more: int,
    less: int,
    least: float,
    sizes: str | None = None,
) -> list[Effect]:
    """Seconds to 80 % of HIST (Fig. 7c): ``more`` over ``less`` clients per cell.

    Either may be larger: ``more`` is the number that takes longer according to the claim.
    """
    results = evidence.study("fig7c")
    slow, fast = (_clients(results, uplink, count, sizes) for count in (more, less))
    return [ratio("", slow, fast, least)]


def equal_masks_over_air(
    evidence: Evidence, *, clients: Sequence[int], least: float
) -> list[Effect]:
    """Seconds to 80 % over the air (Fig. 7c): equal masks over those of (36), by clients a cell."""
    results = evidence.study("fig7c")
    return [
        ratio(
            f"{count} clients per cell",
            _clients(results, "aircomp", count),
            _clients(results, "aircomp", count, "optimized"),
            least,
        )
        for count in clients
    ]


def partitions(evidence: Evidence, *, cells: Sequence[int], least: float) -> list[Effect]:
    """Accuracy in the last rounds (Fig. 8): every second - all hidden layers partitioned."""
    results, effects = evidence.study("fig8"), []
    for n in cells:
        alternate, every = (
            by_seed(results, final, algorithm="hist", cells=n, partition=scheme)
            for scheme in ("alternate", "all")
        )
        effects.append(difference(f"N = {n}", alternate, every, least))
    return effects


def _sent(
    results: Results,
    lr: float,
    target: float = TARGET,
    quantity: str = "uplink_mib",
    **settings: Any,
) -> dict[int, CostToTarget]:
    """A cost to the target, at step size ``lr`` if the study has several."""
    if len({case["lr"] for case in results.study.cases}) > 1:
        settings["lr"] = lr
    return costs(results, quantity, target, **settings)


def _clients(
    results: Results, uplink: str, per_cell: int, sizes: str | None = None
) -> dict[int, CostToTarget]:
    """Seconds to 80 % of HIST with ``per_cell`` clients per cell."""
    total = per_cell * results.study.cases[0]["cells"]
    settings: dict[str, Any] = {"algorithm": "hist", "uplink": uplink}
    settings |= {"clients": total, "mask_sizes": sizes}
    return costs(results, "sim_seconds", **settings)
