"""Wording of messages: suggested names, accepted values, and errors of pydantic."""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from channels.arguments import nearest
from channels.summaries import count_of
from channels.validation import public_path, shown

F = TypeVar("F", bound=Callable[..., Any])
_PRIVACY = " There is no differential privacy; your own algorithm can add noise to what it sends."
_TRACKERS = (
    " Choose --track tensorboard, trackio, wandb or mlflow, or give an observer of your own."
)
_ROBUST = " There are no attacks and no robust aggregation; derive an algorithm of your own."

FOREIGN: Mapping[str, str] = {
    **dict.fromkeys(("wandb", "weights_and_biases", "mlflow", "neptune", "comet"), _TRACKERS),
    **dict.fromkeys(
        ("dp", "dp_sgd", "dpsgd", "epsilon", "noise_multiplier", "privacy", "max_grad_norm"),
        _PRIVACY,
    ),
    **dict.fromkeys(
        ("krum", "multi_krum", "trimmed_mean", "median", "byzantine", "attack", "attackers"),
        _ROBUST,
    ),
    "fedopt": " It is a family: choose fedadam, fedyogi, fedadagrad or fedams.",
    "fedavgm": " It is fedavg with server momentum; choose fedavg-m or fedacg.",
    "fedsgd": " It is fedavg with one local step: --local-steps 1.",
    **dict.fromkeys(
        ("fedbn", "fedper", "fedrep", "ditto", "pfedme", "per_fedavg"),
        " There are no personal models.",
    ),
    **dict.fromkeys(
        ("fednova", "feddyn"),
        " It is not there; docs/guides/own-algorithm.md shows how to add an algorithm.",
    ),
    **dict.fromkeys(
        ("secagg", "secure_aggregation", "encryption"), " There is no secure aggregation."
    ),
}
"""The sentence for each word, with underscores."""


def foreign(word: object) -> str:
    """What serves instead of a word of other packages, with a leading space; "" if unknown."""
    return FOREIGN.get(str(word).lower().lstrip("-").replace("-", "_"), "")


NAMES: dict[Any, str] = {int: "whole number", float: "number", str: "string", Path: "path"}
ARTICLES: dict[Any, str] = {int: "a ", float: "a ", str: "a ", Path: "a "}
SEVERAL = " For a run of each value, use wirelessfl sweep, or wirelessfl.combinations with a list."
LIMITS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))


def suggestion(word: object, names: Iterable[str]) -> str:
    """Return " Do you mean 'rounds'?" for the nearest known name, or "" if none is similar.

    A word of other packages gets what serves instead, however similar other names are.
    """
    if advice := foreign(word):
        return advice
    near = nearest(word, names)
    return "" if near is None else f" Do you mean {near!r}?"


def check_keywords(
    function: Callable[..., Any],
    keywords: Iterable[str],
    names: Iterable[str] = (),
    advice: str = "",
) -> None:
    """Refuse keywords that a function does not accept.

    Args:
        function: the function that is called.
        keywords: the keywords of the call.
        names: accepted keywords besides its parameters.
        advice: what to do if no name is similar; by default about settings.

    Raises:
        TypeError: the message suggests the nearest keyword.
    """
    parameters = inspect.signature(function).parameters.values()
    accepted = [*names, *(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)]
    title = function.__name__
    for name in keywords:
        if name not in accepted:
            advice = advice or (
                f" Settings belong to the configuration, see help(wirelessfl.{title})."
            )
            remedy = suggestion(name, accepted) or advice
            raise TypeError(f"{title}() has no argument {name!r}.{remedy}")


def suggesting(advice: str = "") -> Callable[[F], F]:
    """Return a decorator of a function that suggests the nearest of its keywords.

    Args:
        advice: see ``check_keywords``.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            check_keywords(function, kwargs, advice=advice)
            return function(*args, **kwargs)

        return cast(F, call)

    return decorate


def without_none(annotation: Any) -> Any:
    """Return ``T`` for the annotation ``T | None``."""
    if get_origin(annotation) in (types.UnionType, typing.Union):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def needed(info: FieldInfo) -> str:
    """The request for a value that a setting accepts, e.g. "give a whole number >= 1."."""
    kind, kinds = without_none(info.annotation), get_args(info.annotation)
    if Path in kinds and kind is not Path:
        return f"{needed(_without_path(info))[:-1]}, or a file."
    if get_origin(kind) is Literal:
        return f"choose {', '.join(map(str, get_args(kind)))}."
    if kind is bool:
        return "give true or false."
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        entry = FieldInfo.from_annotation(first)
        kind = without_none(entry.annotation)
        name = "names" if kind is str else NAMES.get(kind, "value") + "s"
        if others == [Ellipsis]:
            min_entries = next((m.min_length for m in info.metadata if hasattr(m, "min_length")), 0)
            many = f", at least {min_entries}" if min_entries else ""
            return f"give {name}{_limits(entry)}, separated by commas{many}."
        return f"give two {name}{_limits(entry)}, LOW,HIGH."
    return f"give {ARTICLES.get(kind, '')}{NAMES.get(kind, 'another value')}{_limits(info)}."


def _without_path(info: FieldInfo) -> FieldInfo:
    """The field of a number or word that can also be a path."""
    entry = FieldInfo.from_annotation(without_none(info.annotation))
    entry.metadata = [*entry.metadata, *info.metadata]
    return entry


def _wrong(name: str, value: object, info: FieldInfo) -> str:
    """The message for a value that a setting does not accept."""
    need, kind = needed(info), without_none(info.annotation)
    if isinstance(value, tuple) and all(isinstance(entry, str) for entry in value):
        value = ",".join(value)  # as written on the command line
    near = suggestion(value, map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    if near:
        return f"{name} is {shown(value)}.{near} {need[0].upper()}{need[1:]}"
    if str(value).strip("+-").lower() in ("inf", "infinity", "nan"):
        need = need.replace("a number", "a finite number")
    several = isinstance(value, list | range) or (isinstance(value, str) and "," in value)
    if several and get_origin(kind) is not tuple:
        need += SEVERAL
    return f"{name} is {shown(value)}: {need}"


def _limits(info: FieldInfo) -> str:
    """Limits of a setting as a string, e.g. " >= 0 and < 1"."""
    limits = [
        f"{sign} {getattr(entry, key):g}"
        for key, sign in LIMITS
        for entry in info.metadata
        if getattr(entry, key, None) is not None
    ]
    return " " + " and ".join(limits) if limits else ""


def explain(
    error: ValidationError,
    infos: Mapping[str, FieldInfo],
    prefix: str = "",
    unknown: Callable[[str, str, object], str] | None = None,
) -> str:
    """Summarise pydantic's errors in one line that names settings, values and remedies.

    Args:
        error: pydantic's errors in the settings of a section or choice.
        infos: type and limits of each setting, by name.
        prefix: name of the section with a dot; "" for a choice.
        unknown: returns the message for an unknown setting, given its section, its name and its
            value.
    """
    lines: dict[str, str] = {}
    for entry in error.errors():
        place, value = entry["loc"], entry["input"]
        where = prefix + ".".join(str(part) for part in place)
        if entry["type"] == "unexpected_keyword_argument" and unknown is not None:
            lines[where] = unknown(where.rpartition(".")[0], str(place[-1]), value)
            continue
        info = infos.get(str(place[0])) if place else None
        nested = info is not None and is_dataclass(without_none(info.annotation))
        if entry["type"] == "value_error":
            text = str(entry["ctx"]["error"]).removesuffix(".") + "."
            # That of a whole section or choice begins with the setting's name.
            lines[where] = (f"{prefix}{place[0]}: " if place else prefix) + text
        elif info is None or nested:
            need = "a table of settings" if entry["type"] == "dataclass_type" else "another value"
            lines[where] = f"{where} is {shown(value)}: give {need}."
        else:
            setting = name = f"{prefix}{place[0]}"
            index = next((part for part in place if isinstance(part, int)), None)
            if entry["type"] == "missing" and index is None:
                lines.setdefault(name, f"{name} is missing: {needed(info)}")
                continue
            if index is not None and entry["type"] != "missing":
                name = f"{name}[{index}]"
            # Report only the first wrong entry of a list: pydantic also calls the list too short.
            lines.setdefault(setting, _wrong(name, value, info))
    return " ".join(lines.values())


__all__ = [
    "count_of",
    "explain",
    "nearest",
    "needed",
    "public_path",
    "shown",
    "suggestion",
    "without_none",
]


UNITS = {"hz": "Hz", "db": "dB", "dbm": "dBm", "m": "m", "w": "W"}
"""Units by the last word of a setting's name."""


def fixed(value: float, digits: int) -> str:
    """A number with ``digits`` decimals, or three significant digits.

    The latter if the decimals would leave fewer than two significant digits, or fill a column.

    >>> fixed(34.08, 1), fixed(0.0413, 1), fixed(0.0, 1), fixed(2e9, 1)
    ('34.1', '0.0413', '0.0', '2e+09')
    """
    plain = value == 0 or 10.0 ** (1 - digits) <= abs(value) < WIDE or not math.isfinite(value)
    return f"{value:.{digits}f}" if plain else f"{value:.3g}"


WIDE = 1e7
"""Numbers from which decimals would fill a column."""


def name_and_unit(name: str) -> tuple[str, str]:
    """A setting's name in words, and its unit; the unit is empty if its name has none."""
    words = name.split("_")
    unit = UNITS.get(words[-1], "") if len(words) > 1 else ""
    text = " ".join(words[:-1] if unit else words)
    return text.replace("snr", "SNR").replace("cpu", "CPU"), unit


def heading_of(name: str) -> str:
    """A setting in the heading of a table or on an axis, e.g. "SNR (dB)"."""
    text, unit = name_and_unit(name)
    return f"{text} ({unit})" if unit else text
