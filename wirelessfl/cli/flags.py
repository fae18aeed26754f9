"""Command-line flags, generated from the settings and the choices that a command line names."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from channels.notes import Notes
from wirelessfl.algorithms import algorithm_classes, find_algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import without_none
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS
from wirelessfl.config.combinations import dropped_notes
from wirelessfl.config.kinds import PARTS, chosen_classes, flag_names, section_homes
from wirelessfl.config.sections import SECTIONS, WITHOUT_RESULTS
from wirelessfl.config.synonyms import RENAMED
from wirelessfl.config.tables import OF_FRAME, named_tables, read_toml

SPAN, MOST = re.compile(r"\d{1,9}-\d{1,9}"), 4
"""A span such as 1-3, which is no list, and the most steps of it that a message lists."""

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


def section_flags() -> list[Flag]:
    """The flags of sections."""
    return _flags(
        (name, section, {entry: entry.name for entry in fields(section)})
        for name, section in SECTIONS.items()
    )


def flags_of(owners: Iterable[tuple[str, type[Choice]]]) -> list[Flag]:
    """The flags of the settings of choices.

    Args:
        owners: kind and class of each choice. The name of a flag does not depend on the others.
    """
    owners, taken = list(owners), section_homes()
    names = [flag_names(*owner, taken) for owner in owners]
    return _flags(
        (kind, owner, {entry: name[entry.name] for entry in fields(owner)})
        for (kind, owner), name in zip(owners, names, strict=True)
    )


def _flags(named: Iterable[tuple[str, type[Any], Mapping[Field[Any], str]]]) -> list[Flag]:
    """The flags of some settings of sections and choices, given their names."""
    settings: list[tuple[str, Field[Any], str, FieldInfo]] = []
    for kind, owner, names in named:
        hints = get_type_hints(owner, include_extras=True) if names else {}
        for entry, name in names.items():
            info = FieldInfo.from_annotation(hints[entry.name])
            settings.append((PARTS.get(kind, kind), entry, name, info))
    kinds = [without_none(info.annotation) for *_, info in settings]
    return [
        Flag(name, section, entry.name, kind, info.description or "", _default(entry))
        for (section, entry, name, info), kind in zip(settings, kinds, strict=True)
    ]


def _default(entry: Field[Any]) -> Any:
    """Default of a setting; of a choice its name."""
    if entry.default is MISSING:
        return None
    return entry.default.name if isinstance(entry.default, Choice) else entry.default


@cache
def all_flags() -> tuple[Flag, ...]:
    """The flags of all settings, without repeated names.

    A flag of several choices has the first one's default and the longest list of values.
    """
    kinds = {"algorithm": algorithm_classes()} | {k: kind.classes() for k, kind in KINDS.items()}
    owners = [(kind, cls) for kind, classes in kinds.items() for cls in classes.values()]
    taken = section_homes()
    names = [flag_names(*owner, taken) for owner in owners]
    # Classes share the fields that they inherit.
    inherited: set[tuple[str, Field[Any]]] = set()
    named: list[tuple[str, type[Choice], dict[Field[Any], str]]] = []
    for (kind, cls), name in zip(owners, names, strict=True):
        flags = {entry: name[entry.name] for entry in fields(cls)}
        new = {entry: flag for entry, flag in flags.items() if (flag, entry) not in inherited}
        inherited |= {(flag, entry) for entry, flag in new.items()}
        named.append((kind, cls, new))
    by_name = {flag.name: flag for flag in section_flags()}
    for flag in _flags(named):
        by_name[flag.name] = _widest(by_name.get(flag.name, flag), flag)
    return tuple(by_name.values())


def _widest(first: Flag, second: Flag) -> Flag:
    widest = max(first, second, key=lambda flag: len(get_args(flag.kind)))
    varies = first.varies or first.default != second.default
    return replace(widest, default=first.default, varies=varies)


def add_flags(
    parser: argparse.ArgumentParser,
    chosen: Iterable[Flag],
    words: Sequence[str],
    *,
    lists: bool,
    types: Mapping[str, Callable[[str], Any]],
) -> None:
    """Add the flags of a command line; the configuration refuses those without effect.

    All choices have flags only if the words name one that sections and ``chosen`` lack, or if there
    are no words: listing them takes a tenth of a second.

    Args:
        parser: receives the flags.
        chosen: flags of the chosen classes, which may be the user's own.
        words: the command line.
        lists: whether flags accept several values: ``2,4,6``, or ``1e9,2e9;2e9,4e9`` if each value
            is a list.
        types: types of some flags, by name.
    """
    for kind in KINDS:
        as_type = types.get(kind, _values if lists else str)
        option = "--" + kind.replace("_", "-")
        parser.add_argument(option, metavar="NAME", help=argparse.SUPPRESS, type=as_type)
    parser.add_argument("--task", action="append", help=argparse.SUPPRESS)
    flags = {flag.name: flag for flag in (*chosen, *section_flags())}
    options = {*parser._option_string_actions, *(flag.option for flag in flags.values())}
    named = {word.partition("=")[0] for word in words if word.startswith("--")}
    if whole := not words or not named <= options:
        flags |= {flag.name: flag for flag in all_flags()}
    for flag in flags.values():
        _add(parser, flag, lists, types.get(flag.name))
    for old, new in RENAMED.items() if whole else ():
        (today,) = (action for action in parser._actions if action.dest == new)
        convert: Any = today.type or str
        parser.add_argument(
            "--" + old.replace("_", "-"), dest=new, action=_Renamed, type=convert,
            help=argparse.SUPPRESS,
        )  # fmt: skip
    parser.set_defaults(settings=("algorithm", *KINDS, "task", *flags))


class _Renamed(argparse.Action):
    """Sets the flag of today that a flag of earlier versions stands for, with a note."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """See ``argparse.Action``."""
        setattr(namespace, self.dest, values)
        note = f"{option_string} is now --{self.dest.replace('_', '-')}."
        namespace.old_flags = [*getattr(namespace, "old_flags", ()), note]


def _add(
    parser: argparse.ArgumentParser, flag: Flag, lists: bool, as_type: Callable[[str], Any] | None
) -> None:
    """Add one flag; without a type, its values are strings, which the configuration parses."""
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
            options["type"] = _numbers if kind in (int, float) else _values
        else:
            options["const"] = [True]
    if as_type is not None:
        options["type"] = as_type
    parser.add_argument(flag.option, dest=flag.name, help=argparse.SUPPRESS, **options)


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split(","))


def _values(words: str) -> list[str]:
    values = words.split(",")
    if len(values) > 1 and not all(map(str.strip, values)):
        raise argparse.ArgumentTypeError(f"{words!r} has an empty value: remove a comma")
    return values


def _numbers(words: str) -> list[str]:
    if SPAN.fullmatch(words):
        low, high = map(int, words.split("-"))
        listed = ",".join(map(str, range(low, min(high, low + MOST) + 1)))
        more = ",..." if high > low + MOST else ""
        raise argparse.ArgumentTypeError(f"{words!r} is not a list of values: write {listed}{more}")
    return _values(words)


def _tuples(words: str) -> list[tuple[str, ...]]:
    return [_split(word) for word in words.split(";")]


def given_flags(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line names, without the command's other arguments."""
    Notes()(*getattr(arguments, "old_flags", ()))
    values = {name: getattr(arguments, name, None) for name in arguments.settings}
    return {name: value for name, value in values.items() if value is not None}


def tables_of(arguments: argparse.Namespace, *, named: bool = False) -> dict[str, Any]:
    """Tables of the configuration file; empty if no file is given.

    Args:
        arguments: parsed command line.
        named: whether further arguments name the algorithm.
    """
    tables: dict[str, Any] = {}
    if arguments.config:
        tables = read_toml(arguments.config, arguments.trust)
    if arguments.algorithm is None and "algorithm" not in tables and not named:
        raise ConfigError("no algorithm: name one, or give --config FILE.toml.")
    return tables


def merged(tables: Mapping[str, Any], flags: Mapping[str, Any]) -> Config:
    """The configuration of a file's tables and flags, with notes on what the flags drop."""
    config = Config.merged(tables, flags)
    Notes()(*dropped_notes(tables, config))
    return config


def chosen_tables(
    scout: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[dict[str, Any], Mapping[str, Sequence[str]]]:
    """Tables with the names of the choices on the command line and in its configuration file.

    Args:
        scout: an empty parser of the command, which receives the flags of choices.
        words: the words after the command.

    Returns:
        The tables, which contain only the first of several names in a sweep; and all names of
        choices on the command line, by kind.
    """
    for key in ("config", "local", *(key for _, key in OF_FRAME), *KINDS):
        scout.add_argument("--" + key.replace("_", "-"), dest=key)
    for old, new in RENAMED.items():
        if new in KINDS:
            scout.add_argument("--" + old.replace("_", "-"), dest=new)
    scout.add_argument("--trust", action="store_true")
    plain = [word for word in words if word not in ("-h", "--help")]
    if len(plain) < len(words) and plain[-1:] == ["all"]:
        plain.pop()
    parsed, rest = scout.parse_known_args(plain)
    trust = vars(parsed).pop("trust")
    values = {kind: value.split(",") for kind, value in vars(parsed).items() if value}
    named = {kind: names[0] for kind, names in values.items()}
    tables = read_toml(expanded(parsed.config), trust) if parsed.config else {}
    chosen: dict[str, Any] = {}
    name: Any
    for kind in ("algorithm", *KINDS):
        table = tables.get(kind)
        name = table.get("name") if isinstance(table, Mapping) else table
        if kind in named:
            chosen[kind] = {"name": named[kind]}
        elif isinstance(name, str):
            chosen[kind] = {"name": name}
    if rest and not rest[0].startswith("-"):
        values["algorithm"] = rest[0].split(",")
        chosen["algorithm"] = {"name": values["algorithm"][0]}
    if "local" in named and "algorithm" in chosen:
        chosen["algorithm"]["local"] = named["local"]
    if "sessions" in named or "sessions" in tables:
        chosen["sessions"] = {"sessions": named.get("sessions", 1)}
    network = tables.get("network")
    channel = network.get("channel") if isinstance(network, Mapping) else None
    if "channel" in named or channel is not None:
        chosen["network"] = {"channel": named.get("channel", channel)}
    return chosen, {
        kind: names for kind, names in values.items() if kind in KINDS or kind == "algorithm"
    }


def user_flags(tables: Mapping[str, Any], named: Mapping[str, Sequence[str]]) -> list[Flag]:
    """Flags of the choices in ``tables``, including the user's own classes.

    Args:
        tables: tables with the names of choices.
        named: all names of choices on the command line, by kind; the first ones are in ``tables``.
    """
    owners: list[tuple[str, type[Choice]]] = [
        (kind, find_algorithm(name) if kind == "algorithm" else KINDS[kind].find(name))
        for kind, names in named.items()
        for name in names[1:]
    ]
    if "algorithm" in tables:
        owners += chosen_classes(named_tables(tables)).items()
    return flags_of(owners)
