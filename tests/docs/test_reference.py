"""The reference names everything that is public."""

import importlib
import re
import types

import pytest

ENTRY = re.compile(r"^    ([a-zA-Z_][\w, ]*?)(?:  .*)?$", re.MULTILINE)


@pytest.mark.parametrize("name", ["channels", "solvers", "wirelessfl"])
def test_help_lists_every_public_name_once(name):
    module = importlib.import_module(name)
    listed = [n for entry in ENTRY.findall(module.__doc__) for n in entry.split(", ")]
    packages = [n for n in listed if isinstance(getattr(module, n, None), types.ModuleType)]
    listed = [n for n in listed if n not in (*packages, "channels", "solvers")]
    public = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    assert sorted(listed) == sorted(public)
    width = max(len(line) for line in module.__doc__.splitlines())
    assert width <= 100
