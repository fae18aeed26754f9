"""Command-line flags, generated from the settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from wirelessfl.algorithms import algorithm_classes
from wirelessfl.config.choices import KINDS
from wirelessfl.config.kinds import PARTS, flag_names, section_homes
from wirelessfl.config.sections import SECTIONS, WITHOUT_RESULTS
from wirelessfl.registry import Choice
from wirelessfl.wording import without_none

METAVARS: dict[Any, str] = {Path: "PATH", int: "N", float: "X"}


@dataclass(frozen=True)
class Flag:
    """A flag of a run.

    Args:
        name: flat name of the setting.
        section: table of the setting.
        key: name of the setting in its table.
        kind: type of the value, if it is not None.
        text: description, with the unit.
        default: default value; None if the description gives it.
        varies: whether choices that share the setting have different defaults.
    """

    name: str
    section: str
    key: str
    kind: Any
    text: str
    default: Any
    varies: bool = False

    @property
    def option(self) -> str:
        """The flag as written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def metavar(self) -> str:
        """Placeholder of the value in help pages; empty for a switch without a value."""
        kind = self.kind
        if get_origin(kind) is Literal:
            return "{" + ",".join(str(value) for value in get_args(kind)) + "}"
        if kind is bool:
            return ""
        if get_origin(kind) is tuple:
            first, many = get_args(kind)[0], get_args(kind)[-1] is Ellipsis
            plain = first.__origin__ if get_origin(first) is Annotated else first
            return f"{METAVARS.get(plain, 'NAME')},..." if many else "LOW,HIGH"
        return METAVARS.get(kind, "NAME")


def section_flags() -> Iterator[Flag]:
    """The flags of sections."""
    for section, model in SECTIONS.items():
        infos = model.model_fields
        kinds = [without_none(info.annotation) for info in infos.values()]
        for (name, info), kind in zip(infos.items(), kinds, strict=True):
            yield Flag(name, section, name, kind, info.description or "", info.default)


def choice_flags(kind: str, owner: type[Choice]) -> Iterator[Flag]:
    """The flags of a choice's settings."""
    # The choices of other kinds do not affect the names of these flags.
    names = flag_names(owner, section_homes())
    yield from _flags_of(kind, owner, {entry: names[entry.name] for entry in fields(owner)})


def _flags_of(kind: str, owner: type[Choice], names: Mapping[Field[Any], str]) -> Iterator[Flag]:
    """The flags of some settings of a choice, given their names."""
    hints = get_type_hints(owner, include_extras=True) if names else {}
    infos = [FieldInfo.from_annotation(hints[entry.name]) for entry in names]
    kinds = [without_none(info.annotation) for info in infos]
    section = PARTS.get(kind, kind)
    for (entry, name), info, type_ in zip(names.items(), infos, kinds, strict=True):
        default = None if entry.default is MISSING else entry.default
        if isinstance(default, Choice):
            default = default.name
        yield Flag(name, section, entry.name, type_, info.description or "", default)


@cache
def all_flags() -> tuple[Flag, ...]:
    """The flags of all settings, without repeated names.

    A flag of several choices has the first one's default and the longest list of values.
    """
    known = {"algorithm": algorithm_classes()} | {k: kind.classes() for k, kind in KINDS.items()}
    owners = [(kind, cls) for kind, classes in known.items() for cls in classes.values()]
    taken = section_homes()
    names = [flag_names(cls, taken) for _, cls in owners]
    found = {flag.name: flag for flag in section_flags()}
    inherited: set[tuple[str, Field[Any]]] = set()
    for (kind, cls), named in zip(owners, names, strict=True):
        own = {entry: named[entry.name] for entry in fields(cls)}
        own = {entry: name for entry, name in own.items() if (name, entry) not in inherited}
        for flag in _flags_of(kind, cls, own):
            found[flag.name] = _widest(found.get(flag.name, flag), flag)
        inherited |= {(name, entry) for entry, name in own.items()}
    return tuple(found.values())


def _widest(one: Flag, other: Flag) -> Flag:
    widest = max(one, other, key=lambda flag: len(get_args(flag.kind)))
    varies = one.varies or one.default != other.default
    return replace(widest, default=one.default, varies=varies)


def add_flags(
    parser: argparse.ArgumentParser, others: Iterable[Flag] = (), *, lists: bool = False
) -> None:
    """Add a flag for every setting; the configuration refuses those without effect.

    Args:
        parser: receives the flags.
        others: flags of the user's own classes, which the package does not list.
        lists: whether flags accept several values: ``2,4,6``, or ``1e9,2e9;2e9,4e9`` if each value
            is a list.
    """
    for kind in KINDS:
        several: dict[str, Any] = {"type": _values} if lists else {}
        option = "--" + kind.replace("_", "-")
        parser.add_argument(option, metavar="NAME", help=argparse.SUPPRESS, **several)
    parser.add_argument("--task", action="append", help=argparse.SUPPRESS)
    known = {flag.name: flag for flag in (*others, *all_flags())}
    for flag in known.values():
        _add(parser, flag, lists)


def _add(parser: argparse.ArgumentParser, flag: Flag, lists: bool) -> None:
    """Add one flag; its values stay strings, which the configuration parses and checks."""
    kind = flag.kind
    options: dict[str, Any] = {"metavar": flag.metavar}
    if kind is bool:
        options = {"action": "store_const", "const": True}
    elif get_origin(kind) is tuple:
        options["type"] = _split
    if lists and flag.name not in WITHOUT_RESULTS:  # a path has one value in a sweep
        if get_origin(kind) is tuple:
            options["type"] = _tuples
        elif kind is not bool:
            options["type"] = _values
        else:
            options["const"] = [True]
    parser.add_argument(flag.option, dest=flag.name, help=argparse.SUPPRESS, **options)


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split(","))


def _values(words: str) -> list[str]:
    return words.split(",")


def _tuples(words: str) -> list[tuple[str, ...]]:
    return [_split(word) for word in words.split(";")]


def given_flags(arguments: argparse.Namespace, not_settings: Iterable[str]) -> dict[str, Any]:
    """The given settings, without the command's other arguments."""
    skip = set(not_settings)
    return {k: v for k, v in vars(arguments).items() if v is not None and k not in skip}
