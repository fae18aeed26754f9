"""Effects that test the HIST paper's claims, see ``claims.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from experiments.evidence import Evidence, by_seed, final
from experiments.hist.figures import SPLITS, TARGET
from experiments.hist.measures import costs, over_oma, sway, throughout
from experiments.studies import Results
from wirelessfl.results.intervals import Effect, Reached, contrast, difference, over_best, ratio
from wirelessfl.results.names import NAMES, UPLINKS

CAP = 1.5
"""The paper's cap on the size of an optimized mask, in units of total/cells."""


def savings(
    evidence: Evidence,
    *,
    parts: Sequence[tuple[str, str, float]],
    cells: Sequence[int],
    lr: float,
    least: float,
) -> list[Effect]:
    """MiB per client (Fig. 3, 4): HFedAvg over HIST, and HIST with fewest over most cells.

    ``parts`` lists studies with a split and the target; ``lr`` selects one of the step sizes
    if a study has several.
    """
    found = []
    for study, split, target in parts:
        results, where = evidence.study(study), f"{SPLITS[split]}, {100 * target:g} %"
        sent = {
            (name, n): _sent(results, lr, target, split=split, algorithm=name, cells=n)
            for name in ("hist", "hfedavg")
            for n in cells
        }
        for n in cells:
            name = f"{where}, HFedAvg / HIST, N = {n}"
            found.append(ratio(name, sent["hfedavg", n], sent["hist", n], least))
        name = f"{where}, HIST, N = {cells[0]} / N = {cells[-1]}"
        found.append(ratio(name, sent["hist", cells[0]], sent["hist", cells[-1]], least))
    return found


def rise(
    evidence: Evidence,
    *,
    study: str,
    algorithm: str,
    cells: Sequence[int],
    target: float,
    lr: float,
    least: float,
) -> list[Effect]:
    """MiB per client to the target (Fig. 3, 4): the second number of cells over the first.

    ``lr`` selects one of the step sizes if the study has several.
    """
    results = evidence.study(study)
    few, many = (_sent(results, lr, target, algorithm=algorithm, cells=n) for n in cells)
    return [ratio(f"{NAMES[algorithm]}, N = {cells[1]} / N = {cells[0]}", many, few, least)]


def edge_periods(evidence: Evidence, *, least: float) -> list[Effect]:
    """Global rounds to 80 % (Fig. 5): each number of edge rounds E over the next larger one."""
    results, found = evidence.study("fig5"), []
    steps = min(case["local_steps"] for case in results.study.cases)
    values = sorted({c["edge_rounds"] for c in results.study.cases if c["local_steps"] == steps})
    for split in dict.fromkeys(case["split"] for case in results.study.cases):
        rounds = {
            e: costs(results, "round", split=split, local_steps=steps, edge_rounds=e)
            for e in values
        }
        found += [
            ratio(f"{SPLITS[split]}, E = {few} / E = {many}", rounds[few], rounds[many], least)
            for few, many in pairwise(values)
        ]
    return found


def local_steps(evidence: Evidence, *, study: str, least: float) -> list[Effect]:
    """Mean accuracy over all rounds (Fig. 5) of both largest H: 40 - 60 if fully non-i.i.d., else
    60 - 40.
    """
    results, found = evidence.study(study), []
    middle, most = sorted({case["local_steps"] for case in results.study.cases})[-2:]
    edge_rounds = min(case["edge_rounds"] for case in results.study.cases)
    for split, (more, less) in {"noniid": (middle, most), "cell-iid": (most, middle)}.items():
        better, worse = (
            by_seed(results, throughout, split=split, local_steps=steps, edge_rounds=edge_rounds)
            for steps in (more, less)
        )
        name = f"{SPLITS[split]}, H = {more} - H = {less}"
        found.append(difference(name, better, worse, least))
    return found


def table(
    evidence: Evidence, *, study: str, targets: Sequence[float], least: float, widening: float
) -> list[Effect]:
    """MiB per client to the targets (Tables I, II): HFedAvg over HIST; its growth from N = 2 to 4.

    ``widening`` is the least growth of the ratio that counts.
    """
    results, found = evidence.study(study), []
    for split in dict.fromkeys(case["split"] for case in results.study.cases):
        for target in targets:
            sent = {
                (name, n): costs(
                    results, "uplink_mib", target, split=split, algorithm=name, cells=n
                )
                for name in ("hist", "hfedavg")
                for n in (2, 4)
            }
            name = f"{SPLITS[split]}, {100 * target:g} %"
            found += [
                ratio(f"{name}, N = {n}", sent["hfedavg", n], sent["hist", n], least)
                for n in (2, 4)
            ]
            more, less = ((sent["hfedavg", n], sent["hist", n]) for n in (4, 2))
            found.append(contrast(f"{name}, N = 4 / N = 2", more, less, widening))
    return found


def mask_rounds(evidence: Evidence, *, cells: int, least: float) -> list[Effect]:
    """Mean accuracy over all rounds (Fig. 6a): uniform - optimized masks."""
    results = evidence.study("cap")
    published: dict[str, dict[str, Any]] = {"uniform": {}, "optimized": {"size_cap": CAP}}
    uniform, optimized = (
        by_seed(results, throughout, cells=cells, mask_sizes=sizes, slowdown=1, **cap)
        for sizes, cap in published.items()
    )
    return [difference(f"uniform - optimized, N = {cells}", uniform, optimized, least)]


def mask_seconds(evidence: Evidence, *, cells: Sequence[int], least: float) -> list[Effect]:
    """Seconds to 80 % (Fig. 6b, 6c): uniform masks, and HFedAvg, over optimized masks."""
    results, found = evidence.study("fig6"), []
    for n in cells:
        uniform, optimized = (
            costs(results, "sim_seconds", algorithm="hist", cells=n, mask_sizes=sizes)
            for sizes in ("uniform", "optimized")
        )
        full = costs(results, "sim_seconds", algorithm="hfedavg", cells=n)
        found.append(ratio(f"uniform / optimized, N = {n}", uniform, optimized, least))
        found.append(ratio(f"HFedAvg / optimized, N = {n}", full, optimized, least))
    return found


def full_model_seconds(
    evidence: Evidence, *, study: str, cells: Sequence[int], least: float
) -> list[Effect]:
    """Seconds to 80 % of HFedAvg (Fig. 6c): the second number of cells over the first."""
    results = evidence.study(study)
    few, many = (costs(results, "sim_seconds", algorithm="hfedavg", cells=n) for n in cells)
    return [ratio(f"HFedAvg, N = {cells[1]} / N = {cells[0]}", many, few, least)]


def noise(
    evidence: Evidence,
    *,
    robust: Sequence[float],
    broken: float,
    margin: float,
    least: float,
    unsteady: float,
) -> list[Effect]:
    """Accuracy in the last rounds (Fig. 7a): OMA - AirComp, equal within ``margin`` at ``robust``.

    At the SNR ``broken`` it is at least ``least``, and the standard deviation over the last
    rounds is larger with AirComp by at least ``unsteady``.
    """
    results = evidence.study("fig7a")
    oma = by_seed(results, final, uplink="tdma")
    air = {snr: by_seed(results, final, uplink="aircomp", snr_db=snr) for snr in (*robust, broken)}
    found = [
        difference(f"OMA - AirComp, {snr:g} dB", oma, air[snr], margin, equal=True)
        for snr in robust
    ]
    found.append(difference(f"OMA - AirComp, {broken:g} dB", oma, air[broken], least))
    calm = by_seed(results, sway, uplink="tdma")
    noisy = by_seed(results, sway, uplink="aircomp", snr_db=broken)
    name = f"standard deviation, AirComp - OMA, {broken:g} dB"
    return [*found, difference(name, noisy, calm, unsteady)]


def noise_seconds(
    evidence: Evidence,
    *,
    snrs: Sequence[float],
    falls: Sequence[tuple[float, float]],
    least: float,
) -> list[Effect]:
    """Seconds to 80 % (Fig. 7b): the fastest other scheme over HIST with AirComp, at each SNR.

    Then HIST with AirComp at the first over the second SNR of each pair in ``falls``.
    """
    results = evidence.study("fig7b")
    air = {
        (name, snr): costs(results, "sim_seconds", algorithm=name, uplink="aircomp", snr_db=snr)
        for name in ("hist", "hfedavg")
        for snr in {*snrs, *(snr for pair in falls for snr in pair)}
    }
    found = []
    for snr in snrs:
        others = {
            f"{NAMES[name]}, OMA": over_oma(results, name, snr) for name in ("hist", "hfedavg")
        }
        others[f"{NAMES['hfedavg']}, AirComp"] = air["hfedavg", snr]
        name = f"fastest other / ours, {snr:g} dB"
        found.append(over_best(name, others, air["hist", snr], least))
    for low, high in falls:
        name = f"AirComp, {low:g} dB / {high:g} dB"
        found.append(ratio(name, air["hist", low], air["hist", high], least))
    return found


def client_seconds(
    evidence: Evidence, *, changes: Sequence[tuple[str, int, int]], least: float
) -> list[Effect]:
    """Seconds to 80 % of HIST (Fig. 7c): first over second number of clients per cell, by uplink.

    ``changes`` lists uplink and both numbers.
    """
    results, found = evidence.study("fig7c"), []
    for uplink, more, less in changes:
        slow, fast = (_clients(results, uplink, each) for each in (more, less))
        name = f"{UPLINKS[uplink]}, {more} / {less} clients per cell"
        found.append(ratio(name, slow, fast, least))
    return found


def partitions(evidence: Evidence, *, cells: Sequence[int], least: float) -> list[Effect]:
    """Accuracy in the last rounds (Fig. 8): every second - all hidden layers partitioned."""
    results, found = evidence.study("fig8"), []
    for n in cells:
        alternate, every = (
            by_seed(results, final, algorithm="hist", cells=n, partition=scheme)
            for scheme in ("alternate", "all")
        )
        found.append(difference(f"1/N - 1/N², N = {n}", alternate, every, least))
    return found


def _sent(results: Results, lr: float, target: float = TARGET, **wanted: Any) -> dict[int, Reached]:
    """MiB per client to the target, at step size ``lr`` if the study has several."""
    if len({case["lr"] for case in results.study.cases}) > 1:
        wanted["lr"] = lr
    return costs(results, "uplink_mib", target, **wanted)


def _clients(results: Results, uplink: str, each: int) -> dict[int, Reached]:
    """Seconds to 80 % of HIST with ``each`` clients per cell."""
    total = each * results.study.cases[0]["cells"]
    return costs(results, "sim_seconds", algorithm="hist", uplink=uplink, clients=total)
