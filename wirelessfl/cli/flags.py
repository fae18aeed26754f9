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
        annotation, *extras = get_args(hints[entry.name]) or (hints[entry.name],)
        if get_origin(hints[entry.name]) is not typing.Annotated:
            annotation, extras = hints[entry.name], []
        info = next((e for e in extras if isinstance(e, FieldInfo)), None)
        default = None if entry.default is MISSING else entry.default
        _add(group, flag, annotation, info.description if info else None, default)


def _add(group: Any, name: str, annotation: Any, text: str | None, default: Any) -> None:
    """One flag; values stay text, the configuration reads and checks them."""
    choices = _choices(annotation)
    shown = "" if default is None else f" (default: {default})"
    options: dict[str, Any] = {"metavar": _metavar(annotation)}
    if choices:
        options = {"choices": choices}
    if "tuple" in str(annotation):
        options["type"] = lambda text: tuple(text.split(","))
    group.add_argument(
        "--" + name.replace("_", "-"),
        dest=name,
        help=((text or "") + shown).replace("%", "%%"),
        **options,
    )


def _choices(annotation: Any) -> list[str] | None:
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    return None


def _metavar(annotation: Any) -> str:
    inner = annotation
    if get_origin(annotation) in (types.UnionType, typing.Union):
        inner = next(a for a in get_args(annotation) if a is not type(None))
    if inner is Path:
        return "PATH"
    if "tuple" in str(inner):
        return "LOW,HIGH"
    return {int: "N", float: "X", bool: "BOOL"}.get(inner, "NAME")


def given_flags(arguments: argparse.Namespace, own: Iterable[str]) -> dict[str, Any]:
    """The settings that were given, without the command's ``own`` arguments."""
    skip = set(own)
    return {k: v for k, v in vars(arguments).items() if v is not None and k not in skip}
