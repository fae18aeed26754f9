"""Finds the choices named on a command line; they determine its flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirelessfl.algorithms import find_algorithm
from wirelessfl.cli.flags import Flag, flags_of
from wirelessfl.cli.parser import Parser
from wirelessfl.config.choices import KINDS
from wirelessfl.config.kinds import chosen_classes
from wirelessfl.config.tables import OF_FRAME, named_tables, read_toml
from wirelessfl.import_paths import expanded
from wirelessfl.registry import Choice


def chosen_tables(
    prog: str, words: Sequence[str]
) -> tuple[dict[str, Any], Mapping[str, Sequence[str]]]:
    """Tables with the names of the choices on the command line and in its configuration file.

    Args:
        prog: the command, e.g. "wirelessfl run".
        words: the words after the command.

    Returns:
        The tables, which contain only the first of several names in a sweep; and all names of
        choices on the command line, by kind.

    Raises:
        ConfigError: the file cannot be read, or names code without being trusted.
    """
    scout = Parser(prog=prog, add_help=False, allow_abbrev=False, lenient=True)
    for key in ("config", "local", *(key for _, key in OF_FRAME), *KINDS):
        scout.add_argument("--" + key.replace("_", "-"), dest=key)
    scout.add_argument("--trust", action="store_true")
    plain = [word for word in words if word not in ("-h", "--help")]
    if len(plain) < len(words) and plain[-1:] == ["all"]:
        plain.pop()
    known, rest = scout.parse_known_args(plain)
    trust = vars(known).pop("trust")
    values = {kind: value.split(",") for kind, value in vars(known).items() if value}
    named = {kind: names[0] for kind, names in values.items()}
    tables = read_toml(expanded(known.config), trust) if known.config else {}
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

    Raises:
        ConfigError: a name is unknown.
    """
    owners: list[tuple[str, type[Choice]]] = [
        (kind, find_algorithm(name) if kind == "algorithm" else KINDS[kind].find(name))
        for kind, names in named.items()
        for name in names[1:]
    ]
    if "algorithm" in tables:
        owners += chosen_classes(named_tables(tables)).items()
    return flags_of(owners)
