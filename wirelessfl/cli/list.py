"""``wirelessfl list``: the names of all choices, or the settings of one."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.terminal import Terminal
from wirelessfl.cli.parser import Parser

HELP = "list algorithms, data sets, models and other choices: wirelessfl list [NAME]"
Lines = Mapping[str, str]
SHORTEST = 3
"""Letters of a text that descriptions are searched for."""
PLAIN = {"algorithm": "algorithms", "dataset": "data sets", "model": "models"}
"""Headings of kinds that have no flag with a table of their own."""


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = "List all choices, those of one kind, or the settings of one choice."
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="a kind, e.g. uplink; a choice, e.g. hist; a setting, e.g. coherence; or words to "
        "search for, e.g. 'phase error'",
    )


def act(arguments: argparse.Namespace) -> int:
    """Print the names of all choices, those of one kind, or the settings of one choice."""
    names = dict(_kinds())
    console, word = Terminal(), arguments.name
    if word is None:
        console.print(_table(names))
        return 0
    kind = _kind(word, names)
    if kind in names:
        console.print(_table({kind: names[kind]}))
        return 0
    owners = [kind for kind, lines in names.items() if word in lines]
    if not owners:
        from wirelessfl.base.wording import foreign, suggestion
        from wirelessfl.cli.flags import all_flags
        from wirelessfl.config.synonyms import synonym

        settings = {flag.name for flag in all_flags()}
        meant = synonym(word, settings)
        lines = _settings(word) or _settings("" if meant is None else meant.setting)
        if not lines and not foreign(word) and meant is None:
            lines = _search(word, names)
        for line in lines:
            console.tell(line)
        if lines:
            return 0
        every = [*names, *(name for of_kind in names.values() for name in of_kind), *settings]
        hint = suggestion(word, every) if meant is None else meant.sentence()
        raise ConfigError(f"{word!r} is unknown.{hint} wirelessfl list lists all names.")
    for kind in owners:
        for line in _details(kind, word, names[kind][word]):
            console.tell(line)
    return 0


def _settings(word: str) -> list[str]:
    """Lines about the setting of this name, with or without dashes; none if there is none."""
    from wirelessfl.cli.flags import all_flags
    from wirelessfl.cli.help import flag_line
    from wirelessfl.config.kinds import owner_names

    name = word.lower().lstrip("-").replace("-", "_")
    lines = []
    for flag in all_flags():
        if flag.name == name:
            option, text = flag_line(flag, None if flag.varies else flag.default)
            having = owner_names(flag.name) or owner_names(flag.key) or f"section [{flag.section}]"
            lines += [f"{option}: {text}", f"  setting {flag.key!r} of {having}"]
    return lines


def _search(text: str, names: Mapping[str, Lines]) -> list[str]:
    """Lines of the choices and settings whose name or description has all words of a text."""
    from wirelessfl.cli.flags import all_flags
    from wirelessfl.cli.help import flag_line

    words = _plain(text).split()
    if len(text) < SHORTEST:
        return []
    choices = [
        (f"{kind.replace('_', ' ')} {name}", line)
        for kind, of_kind in names.items()
        for name, line in of_kind.items()
    ]
    settings = [flag_line(flag, None if flag.varies else flag.default) for flag in all_flags()]
    return [
        f"{name}: {line}"
        for name, line in [*choices, *dict.fromkeys(settings)]
        if all(word in _plain(f"{name} {line}") for word in words)
    ]


def _plain(text: str) -> str:
    return text.lower().replace("-", " ").replace("_", " ")


def _kind(word: str, kinds: Collection[str]) -> str:
    """The kind that a word names: "uplink", "uplinks", "data sets"; else the word."""
    plain = word.lower().replace("-", "_").replace(" ", "_")
    plain = plain.replace("data_set", "dataset")
    return next((kind for kind in kinds if plain in (kind, f"{kind}s")), word)


def _kinds() -> Iterator[tuple[str, Lines]]:
    """Yield each kind with the first lines of its choices."""
    from wirelessfl.algorithms import algorithm_classes
    from wirelessfl.config.choices import KINDS
    from wirelessfl.data import dataset_names
    from wirelessfl.data.choice import described
    from wirelessfl.models import MODELS
    from wirelessfl.models.metrics import METRICS

    yield "algorithm", {n: _first_line(c) for n, c in algorithm_classes().items()}
    yield "dataset", {name: described(name) for name in dataset_names()}
    yield "model", {name: _first_line(factory) for name, factory in MODELS.items()}
    for kind, choices in KINDS.items():
        if kind not in ("dataset", "model"):
            yield kind, {name: _first_line(cls) for name, cls in choices.classes().items()}
    yield "metric", {name: _first_line(cls) for name, cls in METRICS.classes().items()}


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().splitlines()[0]


def _table(names: Mapping[str, Lines]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    for kind, things in names.items():
        heading = PLAIN.get(kind, f"--{kind.replace('_', '-')}")
        table.add_row(Text(heading, style="bold"), "")
        for name, text in sorted(things.items()):
            table.add_row(f"  {name}", text)
    return table


def _details(kind: str, name: str, line: str) -> Iterator[str]:
    """Yield lines about one choice: what it is, and its settings."""
    from wirelessfl.algorithms import algorithm_classes
    from wirelessfl.cli.flags import flags_of
    from wirelessfl.cli.help import flag_line
    from wirelessfl.config.choices import KINDS
    from wirelessfl.models.metrics import METRICS

    extra: dict[str, Any] = {"algorithm": algorithm_classes, "metric": METRICS.classes}
    classes = extra[kind]() if kind in extra else KINDS[kind].classes()
    cls = classes[name]
    if kind == "dataset":
        yield f"dataset {name}: {line}."
        yield f"  wirelessfl run fedavg --dataset {name}"
    else:
        text = inspect.getdoc(getattr(cls, "factory", None) or cls) or line
        yield f"{kind.replace('_', ' ')} {name}: {text.partition(chr(10) + 'Args:')[0].strip()}"
    for flag in flags_of([(kind, cls)]):
        option, description = flag_line(flag, flag.default)
        yield f"  {option:<28} {description}"
