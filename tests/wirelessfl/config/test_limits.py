"""Every setting refuses values outside its type and limits; both are read from its field."""

import math
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown, without_none
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS
from wirelessfl.config.kinds import prefix_of
from wirelessfl.config.sections import SECTIONS

SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
OWN_MESSAGES = {
    "workers": "give 1 to 1024, or auto.",
    "chunk": "give 1 or more, or tune.",
    "local": "give the name of an algorithm.",
}
"""Remedies of settings that take a number or a word, whose type tells nothing about them."""
WORDS = {int: "whole number", float: "number", str: "string", Path: "path"}


def limits(info: FieldInfo) -> dict[str, float]:
    """The limits of a field, such as {"ge": 1}."""
    found = ((key, getattr(entry, key, None)) for entry in info.metadata for key in SIGNS)
    return {key: value for key, value in found if value is not None}


def outside(info: FieldInfo) -> Iterator[tuple[Any, str]]:
    """Values that a field of one number, word or switch refuses, each with part of the remedy."""
    kind = without_none(info.annotation)
    if Path in get_args(info.annotation) and kind is not Path:
        yield ["x"], ", or a file."
    elif get_origin(kind) is Literal:
        yield "none-of-these", ", ".join(map(str, get_args(kind)))
    elif kind is bool:
        yield "maybe", "give true or false."
    elif kind in WORDS:
        named, own = WORDS[kind], limits(info)
        yield (["x"], named)
        for key, limit in own.items():
            beyond = {"ge": -1, "gt": 0, "le": max(1, abs(limit)), "lt": 0}[key]
            yield limit + beyond, f"{SIGNS[key]} {limit:g}"
        if kind in (int, float):
            yield True, "it does not accept true/false."
            yield "many", named
        if kind is int:
            yield 2.5, named
        if kind is float and info.metadata:
            yield math.nan, "finite number"


def wrong(info: FieldInfo) -> Iterator[tuple[str, Any, Any, str]]:
    """Place in the setting, value of the setting, refused value, and part of the remedy."""
    kind = without_none(info.annotation)
    if get_origin(kind) is not tuple:
        yield from (("", value, value, remedy) for value, remedy in outside(info))
        return
    first, *others = get_args(kind)
    if not any(isinstance(entry, BeforeValidator) for entry in info.metadata):  # one number, too
        yield "", 3.0, 3.0, "give "
    if first in (int, float):
        switches = (True,) * (len(others) + 1)
        yield "", switches, switches, "it does not accept true/false."
    if others != [Ellipsis]:
        yield "", [1], [1], "give two numbers"
    for value, remedy in outside(FieldInfo.from_annotation(first)):
        if value is True or isinstance(value, list):  # refused as a whole
            continue
        remedy = remedy.removeprefix("finite ")
        yield "[0]", [value, *([value] if others != [Ellipsis] else [])], value, remedy


def settings() -> Iterator[Any]:
    """Table, setting and field of every setting; once if several choices share it."""
    for section, owner in SECTIONS.items():
        for name, hint in get_type_hints(owner, include_extras=True).items():
            if get_origin(hint) is not ClassVar and name not in OWN_MESSAGES:
                info = FieldInfo.from_annotation(hint)
                yield pytest.param({section: {}}, section, name, info, id=f"{section}-{name}")
    known, seen = {"algorithm": algorithm_classes()}, set()
    for kind, classes in (known | {kind: one.classes() for kind, one in KINDS.items()}).items():
        for title, owner in classes.items():
            hints = get_type_hints(owner, include_extras=True)
            for entry in fields(owner):
                info = FieldInfo.from_annotation(hints[entry.name])
                key = (kind, entry.name, repr(info))
                if key not in seen and entry.name not in OWN_MESSAGES:
                    seen.add(key)
                    table = {kind: {"name": title}}
                    yield pytest.param(table, kind, entry.name, info, id=f"{title}-{entry.name}")


@pytest.mark.parametrize(("table", "section", "name", "info"), [*settings()])
def test_values_outside_the_limits_are_refused(table, section, name, info):
    """The message is one line that names setting, value and what it accepts."""
    title = f"{section}.{name}" if section in SECTIONS else prefix_of(section) + name
    for place, given, value, remedy in wrong(info):
        tables = {"algorithm": {"name": "hist"}, **table}
        tables[section] = {**tables[section], name: given}
        with pytest.raises(ConfigError) as caught:
            Config.of(tables)
        message = str(caught.value)
        assert f" {title}{place} is {shown(value)}" in f" {message}"
        assert remedy in message
        assert message.endswith(".")
        assert "\n" not in message


@pytest.mark.parametrize("name", OWN_MESSAGES)
def test_numbers_or_words_are_refused_with_both(name):
    for value in (3,) if name == "local" else (0, 2.5, "most"):
        with pytest.raises(ConfigError) as caught:
            Config.from_flags("hist", **{name: value})
        assert re.search(rf"\b{name}(:| is) {value!r}( is not .*)?: ", str(caught.value))
        assert str(caught.value).endswith(OWN_MESSAGES[name])


@pytest.mark.parametrize("kind", ["algorithm", "local", *KINDS])
def test_unknown_names_are_refused_with_the_nearest_and_all_others(kind):
    classes = KINDS[kind].classes() if kind in KINDS else algorithm_classes()
    for known in classes:
        wrong = known + known[0]
        table = {"name": "hfedavg", "local": wrong} if kind == "local" else "hfedavg"
        with pytest.raises(ConfigError) as caught:
            Config.of({"algorithm": table, **({} if kind == "local" else {kind: wrong})})
        said = f" '{wrong}' is unknown. Do you mean '{known}'? Choose {', '.join(sorted(classes))}"
        assert said in str(caught.value)
