"""Command-line flags made from the settings themselves: names, choices, units, defaults."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from wirelessfl.config.kinds import KINDS, flag_homes
from wirelessfl.config.sections import PLACES, SECTIONS
from wirelessfl.registry import Choice
from wirelessfl.wording import without_none

HELP = {
    "uplink": "how updates cross the air: {} (default: tdma)",
    "schedule": "when work is handed out and servers merge: {} (default: the algorithm's own, or "
    "rounds)",
    "assignment": "who trains what, in rounds of several tasks: {} (default: the algorithm's own, "
    "or random)",
    "warm_start": "model of a session's start: {} (default: previous)",
}
METAVARS: dict[Any, str] = {Path: "PATH", int: "N", float: "X"}


def add_flags(
    parser: argparse.ArgumentParser,
    owners: Mapping[str, Iterable[type[Choice]]],
    defaults: Mapping[str, Mapping[str, Any]],
    *,
    lists: bool = False,
) -> None:
    """Add a flag for every setting of a run.

    Args:
        parser: where to.
        owners: by kind, choices whose settings to offer: those that are made, or all of a kind
            where none is named.
        defaults: by the name of a choice, defaults of its settings that are not its own.
        lists: whether each takes several values: ``2,4,6``, or ``1e9,2e9;2e9,4e9`` where one value
            is a list itself.
    """
    for section, model in SECTIONS.items():
        group = parser.add_argument_group(f"{section} settings")
        for name, info in model.model_fields.items():
            _add(group, name, info.annotation, info.description, info.default, lists)
    parser.add_argument_group("several tasks").add_argument(
        "--task",
        action="append",
        metavar="DATASET,SETTING=X,...",
        help="a task of its own, e.g. mnist,model=mlp,lr=0.1,target=0.93,requests=96,buffer=3; "
        "repeated for each (under schedule buffered or simultaneous)",
    )
    several: dict[str, Any] = {"type": _values} if lists else {}
    for kind, known in KINDS.items():
        group = parser.add_argument_group(f"{kind.replace('_', ' ')} settings")
        names = "{" + ",".join(sorted(known.classes())) + "}"
        flag = "--" + kind.replace("_", "-")
        group.add_argument(flag, metavar="NAME", help=HELP[kind].format(names), **several)
    seen: set[str] = set()
    for kind in ("algorithm", *KINDS):
        for owner in owners[kind]:
            _add_owner(parser, kind, owner, defaults.get(owner.name, {}), seen, lists)


def _add_owner(
    parser: argparse.ArgumentParser,
    kind: str,
    owner: type[Choice],
    defaults: Mapping[str, Any],
    seen: set[str],
    lists: bool,
) -> None:
    """The flags of one choice, in a group of their own."""
    # What is chosen of the other kinds does not matter for the names of its flags.
    homes = flag_homes({kind: owner})
    flag_of = {key: flag for flag, (section, key) in homes.items() if section == kind}
    hints = get_type_hints(owner, include_extras=True)
    group = parser.add_argument_group(f"settings of {owner.name}")
    for entry in fields(owner):
        flag = flag_of[entry.name]
        if flag in seen:
            continue
        seen.add(flag)
        info = FieldInfo.from_annotation(hints[entry.name])
        default = defaults.get(entry.name, entry.default)
        shown = None if default is MISSING else default
        _add(group, flag, info.annotation, info.description, shown, lists)


def _add(
    group: Any, name: str, annotation: Any, text: str | None, default: Any, lists: bool
) -> None:
    """One flag; values stay text, the configuration reads and checks them."""
    kind = without_none(annotation)
    shown = "" if default is None else f" (default: {default})"
    options: dict[str, Any] = {"metavar": METAVARS.get(kind, "NAME")}
    if get_origin(kind) is Literal:
        # Not argparse's choices: the configuration refuses others in the same words everywhere.
        options = {"metavar": "{" + ",".join(str(value) for value in get_args(kind)) + "}"}
    elif kind is bool:
        options, shown = {"action": "store_const", "const": True}, ""
    elif get_origin(kind) is tuple:
        first, many = get_args(kind)[0], get_args(kind)[-1] is Ellipsis
        entry = METAVARS.get(first.__origin__ if get_origin(first) is Annotated else first, "NAME")
        options = {"metavar": f"{entry},..." if many else "LOW,HIGH", "type": _split}
        if default is not None:
            shown = f" (default: {','.join(f'{value:g}' for value in default)})"
    if lists and name not in PLACES:  # a sweep takes one value
        if get_origin(kind) is tuple:
            options |= {"type": _tuples, "metavar": options["metavar"] + ";..."}
        elif kind is not bool:
            shape = options["metavar"] if get_origin(kind) is Literal else "X"
            options = {"metavar": f"{shape},...", "type": _values}
        else:
            options["const"] = [True]
    group.add_argument(
        "--" + name.replace("_", "-"),
        dest=name,
        help=((text or "") + shown).replace("%", "%%"),
        **options,
    )


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split(","))


def _values(words: str) -> list[str]:
    return words.split(",")


def _tuples(words: str) -> list[tuple[str, ...]]:
    return [_split(word) for word in words.split(";")]


def given_flags(arguments: argparse.Namespace, not_settings: Iterable[str]) -> dict[str, Any]:
    """The settings that were given, without the command's ``own`` arguments."""
    skip = set(not_settings)
    return {k: v for k, v in vars(arguments).items() if v is not None and k not in skip}
