"""The choices that a command line names, before its flags are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wirelessfl.cli.flags import Flag, choice_flags
from wirelessfl.cli.parser import Parser
from wirelessfl.config.kinds import KINDS, chosen_classes
from wirelessfl.config.tables import named_tables, read_toml


def chosen_tables(prog: str, words: Sequence[str]) -> dict[str, Any]:
    """Tables with the names of the choices on the command line and in its configuration file.

    Of several values in a sweep, the first counts.

    Args:
        prog: the command.
        words: those behind it.

    Raises:
        ConfigError: the file cannot be read.
    """
    scout = Parser(prog=prog, add_help=False, allow_abbrev=False, lenient=True)
    for key in ("config", "local", "sessions", *KINDS):
        scout.add_argument("--" + key.replace("_", "-"), dest=key)
    plain = [word for word in words if word not in ("-h", "--help")]
    if len(plain) < len(words) and plain[-1:] == ["all"]:
        plain.pop()
    known, rest = scout.parse_known_args(plain)
    named = {kind: value.split(",")[0] for kind, value in vars(known).items() if value}
    tables = read_toml(Path(known.config)) if known.config else {}
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
        chosen["algorithm"] = {"name": rest[0]}
    if "local" in named and "algorithm" in chosen:
        chosen["algorithm"]["local"] = named["local"]
    if "sessions" in named or "sessions" in tables:
        chosen["sessions"] = {"sessions": named.get("sessions", 1)}
    return chosen


def user_flags(tables: Mapping[str, Any]) -> Iterator[Flag]:
    """Flags of the choices taken, the user's among them.

    Raises:
        ConfigError: a name is unknown.
    """
    if "algorithm" in tables:
        for kind, owner in chosen_classes(named_tables(tables)).items():
            yield from choice_flags(kind, owner)
