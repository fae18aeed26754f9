"""Command-line flags made from the settings themselves: names, choices, units, defaults."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from wirelessfl.algorithms import Algorithm, algorithm_classes
from wirelessfl.config import SECTIONS, flag_homes
from wirelessfl.uplinks import Uplink, uplink_classes

METAVARS: dict[Any, str] = {Path: "PATH", int: "N", float: "X"}


def add_flags(
    parser: argparse.ArgumentParser,
    algorithms: Iterable[type[Algorithm]],
    uplinks: Iterable[type[Uplink]],
) -> None:
    """Add a flag for every setting of a run.

    Args:
        parser: where to.
        algorithms: whose settings to offer: the one that is run, or all where none is named.
        uplinks: likewise.
    """
    for section, model in SECTIONS.items():
        group = parser.add_argument_group(f"{section} settings")
        for name, info in model.model_fields.items():
            _add(group, name, info.annotation, info.description, info.default)
    names = "{" + ",".join(sorted(uplink_classes())) + "}"
    parser.add_argument_group("uplink settings").add_argument(
        "--uplink", metavar="NAME", help=f"how updates cross the air: {names} (default: tdma)"
    )
    seen: set[str] = set()
    for kind, owners in (("algorithm", algorithms), ("uplink", uplinks)):
        for owner in owners:
            _add_owner(parser, kind, owner, seen)


def _add_owner(
    parser: argparse.ArgumentParser, kind: str, owner: type[Any], seen: set[str]
) -> None:
    """The flags of one algorithm or uplink, in a group of their own."""
    tdma = uplink_classes()["tdma"]
    base = next(iter(algorithm_classes().values()))
    homes = flag_homes(owner, tdma) if kind == "algorithm" else flag_homes(base, owner)
    flag_of = {key: flag for flag, (section, key) in homes.items() if section == kind}
    hints = get_type_hints(owner, include_extras=True)
    group = parser.add_argument_group(f"settings of {owner.name}")
    for entry in fields(owner):
        flag = flag_of[entry.name]
        if flag in seen:
            continue
        seen.add(flag)
        info = FieldInfo.from_annotation(hints[entry.name])
        default = None if entry.default is MISSING else entry.default
        _add(group, flag, info.annotation, info.description, default)


def _add(group: Any, name: str, annotation: Any, text: str | None, default: Any) -> None:
    """One flag; values stay text, the configuration reads and checks them."""
    kind = _without_none(annotation)
    shown = "" if default is None else f" (default: {default})"
    options: dict[str, Any] = {"metavar": METAVARS.get(kind, "NAME")}
    if get_origin(kind) is Literal:
        options = {"choices": [str(value) for value in get_args(kind)]}
    elif kind is bool:
        options, shown = {"action": "store_const", "const": True}, ""
    elif get_origin(kind) is tuple:
        options = {"metavar": "LOW,HIGH", "type": lambda words: tuple(words.split(","))}
    group.add_argument(
        "--" + name.replace("_", "-"),
        dest=name,
        help=((text or "") + shown).replace("%", "%%"),
        **options,
    )


def _without_none(annotation: Any) -> Any:
    """T of ``T | None``."""
    if get_origin(annotation) in (types.UnionType, typing.Union):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def given_flags(arguments: argparse.Namespace, own: Iterable[str]) -> dict[str, Any]:
    """The settings that were given, without the command's ``own`` arguments."""
    skip = set(own)
    return {k: v for k, v in vars(arguments).items() if v is not None and k not in skip}
