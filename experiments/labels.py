"""Labels of tables and figures: settings and their values, data sets, seeds, costs with bounds."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import AtLeast
from wirelessfl.results.selection import DATA, MODELS, NAMES, UPLINKS

WORDS = {
    "algorithm": "method",
    "alpha": "Dirichlet parameter",
    "beta2": "β₂",
    "capacities": "width",
    "cells": "N",
    "clients_per_round": "S",
    "convention": "convention",
    "dataset": "data",
    "eps": "ε",
    "local_steps": "H",
    "lr": "step size",
    "lr_ratio": "lr ratio",
    "mask_sizes": "mask sizes",
    "masks": "masks",
    "model": "model",
    "momentum": "momentum",
    "server_lr": "server step size",
    "size_cap": "cap",
    "slowdown": "slowdown",
    "snr_db": "SNR (dB)",
    "split": "split",
    "submodel_scale": "activations",
    "tracking_clients": "tracking clients",
    "uplink": "uplink",
    "vhat": "vhat",
    "warm_start": "warm start",
}
"""Names of settings in tables and figures."""
SYMBOLS = {
    "cells": "number of cells",
    "clients_per_round": "clients per round",
    "local_steps": "local steps",
}
"""Meanings of the names that are symbols."""
AXES = {"size_cap": "cap on the size of a submodel / equal share"} | {
    name: f"{meaning} {WORDS[name]}" for name, meaning in SYMBOLS.items()
}
"""Labels of axes, where they differ from the names of settings."""
SYMBOL = 2
"""Length up to which the name of a setting is a symbol."""
PHRASES = {
    "mask_sizes": "{} masks",
    "slowdown": "slowdown {} in half of the cells",
} | dict.fromkeys(("algorithm", "dataset", "model", "submodel_scale", "uplink"), "{}")
"""Settings whose values are not simply put after their names."""
OF_VALUES = {
    "algorithm": NAMES,
    "dataset": DATA,
    "model": MODELS,
    "submodel_scale": {"none": "unscaled", "width": "scaled by width"},
    "uplink": UPLINKS,
}
"""Names of values, by setting."""
OWN_MASKS = {"fedavg-small": "ordered", "fedrolex": "rolling", "heterofl": "ordered"}
"""Masks of the methods that have no setting for them."""
SPREAD = "mean and range"
"""What curves show of several seeds; bars and points have dots beside the mean."""


def shown(case: Case, name: str) -> str:
    """The value of a setting in tables and legends; a dash if the case has none."""
    value = case[name]
    if name == "masks" and value is None:
        value = OWN_MASKS.get(case["algorithm"])
    if name == "capacities" and value is not None:
        return ", ".join(f"{one:g}" for one in value)
    if value is None:
        return "-"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return OF_VALUES.get(name, {}).get(value, text)


def said(case: Case, name: str) -> str:
    """A setting with its value, as in ``N = 4``, ``width 0.5``, ``uniform masks``."""
    word = WORDS[name]
    phrase = PHRASES.get(name, f"{word} = {{}}" if len(word) <= SYMBOL else f"{word} {{}}")
    return phrase.format(shown(case, name))


def data_name(cases: Iterable[Case]) -> str:
    """The data sets of these cases and their models, as in ``Fashion-MNIST, LeNet-5``."""
    pairs = dict.fromkeys((case["dataset"], case["model"]) for case in cases)
    sets = " and ".join(dict.fromkeys(DATA.get(data, data) for data, _ in pairs))
    models = " and ".join(dict.fromkeys(MODELS.get(model, str(model)) for _, model in pairs))
    return f"{sets}, {models}"


def span(counts: Iterable[int]) -> str:
    """The least and the greatest of these numbers, as in ``1 to 3``, or ``3`` if all are equal."""
    ordered = sorted(counts)
    least, most = ordered[0], ordered[-1]
    return f"{most}" if least == most else f"{least} to {most}"


def seeds_of(counts: Iterable[int]) -> str:
    """Numbers of seeds, as in ``1 seed`` and ``1 to 3 seeds``."""
    text = span(counts)
    return "1 seed" if text == "1" else f"{text} seeds"


def seeds_text(results: Results, cases: Iterable[Case], spread: str = "mean") -> str:
    """What is shown of the finished seeds, as in ``mean of 1 to 3 seeds``."""
    seeds = seeds_of({len(results.of(case)) for case in cases} - {0} or {1})
    return seeds if seeds == "1 seed" else f"{spread} of {seeds}"


def costs_of(
    results: Results, case: Case, quantity: str, target: float, tests: int = 1
) -> list[float | None]:
    """For each finished seed, ``quantity`` when ``target`` is first reached, to be drawn.

    A run that does not reach it has the cost of the whole run, as a bound; see ``Results.costs``.
    """
    ends = [rows[-1][quantity] for rows in results.rows(case)]
    costs = results.costs(case, quantity, target, tests)
    return [AtLeast(end) if cost is None else cost for cost, end in zip(costs, ends, strict=True)]
