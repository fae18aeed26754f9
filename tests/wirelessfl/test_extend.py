"""``wirelessfl.extend`` has every base class, and every class in the signatures of its methods."""

import inspect
import pydoc
import re
from typing import get_args, get_origin, get_type_hints

import pytest

import wirelessfl
from wirelessfl import extend
from wirelessfl.config.choices import KINDS

NAMES = {name for name in vars(extend) if not name.startswith("_")}
CLASSES = [value for value in vars(extend).values() if inspect.isclass(value)]
BASES = [*(kind.base for kind in KINDS.values()), *map(vars(extend).get, (
    "Algorithm", "Access", "Assignment", "Attendance", "Delays", "HFedAvg", "Metric", "Observer",
    "Redesign", "Reception", "Scheduler",
))]  # fmt: skip
"""All classes from which users derive, or whose methods they define."""


def in_annotation(hint):
    """The classes of this project in an annotation, by their public name."""
    if get_args(hint):
        parts = [get_origin(hint), *get_args(hint)]
        return {name for part in parts for name in in_annotation(part)}
    if isinstance(hint, list | tuple):
        return {name for part in hint for name in in_annotation(part)}
    ours = getattr(hint, "__module__", "").partition(".")[0] in ("wirelessfl", "channels")
    return {hint} if inspect.isclass(hint) and ours else set()


def signatures(cls):
    """The public methods and properties of a class, as functions."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        for way in ("__func__", "fget", "func"):
            member = getattr(member, way, member) if not inspect.isfunction(member) else member
        if not name.startswith("_") and inspect.isfunction(member):
            yield inspect.unwrap(member)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_the_classes_of_its_methods_are_public(base):
    hints = [hint for method in signatures(base) for hint in get_type_hints(method).values()]
    used = {base} | {cls for hint in hints for cls in in_annotation(hint)}
    assert {cls.__name__ for cls in used if getattr(extend, cls.__name__, None) is not cls} == set()


def test_every_kind_has_its_base_class_and_classes_are_those_of_other_public_modules():
    """A class has one public name, wherever it is imported from."""
    assert {kind.base for kind in KINDS.values()} <= {*CLASSES}
    for cls in CLASSES:
        others = [getattr(wirelessfl, door) for door in wirelessfl.PUBLIC] + [wirelessfl]
        others = [getattr(module, cls.__name__, cls) for module in others]
        assert all(other is cls for other in others), cls


def test_help_lists_every_name_and_nothing_else():
    lines = pydoc.plain(pydoc.render_doc(extend)).splitlines()
    assert len(lines) <= 175
    page = (extend.__doc__ or "").partition("Algorithms: ")[2]
    entries = re.findall(r"^    (\S.*?)(?:  .*)?$", page, re.MULTILINE)
    listed = [name for entry in entries for name in entry.split(", ")]
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_page_names_the_methods_to_define(cls):
    """Those without a default before the brackets, and those in brackets are methods."""
    line = re.search(rf"^    {cls.__name__}  +(.*)$", extend.__doc__ or "", re.MULTILINE)
    needed, _, optional = (line[1] if line else "").partition("(")
    assert getattr(cls, "__abstractmethods__", set()) <= {*re.findall(r"\w+", needed)}
    for method in re.findall(r"\w+", optional.partition(")")[0]):
        assert hasattr(cls, method), method
