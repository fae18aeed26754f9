"""Commands that do not train start without PyTorch."""

import subprocess
import sys
import types

import pytest

from wirelessfl import deferred

COMMANDS = [
    "--help",
    "list",
    "list uplink",
    "run hist --help",
    "run hist --cels 3",
    "run hist --cells 0",
    "sweep hist,hfedavg --cels 2",
    "budget --layout hexagonal",
    "plan hist",
    "plan hist --dataset fashion-mnist --model lenet5 --mask-sizes fixed --mask-shares .1,.2,.3,.4",
    "timeline hist --help",
]
LOADED = """
import contextlib, io, sys
from wirelessfl.cli import main

status = None
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    status = main(sys.argv[1:])
print("torch._C" in sys.modules, status)
"""


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_that_do_not_need_torch_do_not_load_it(words):
    """Loading takes seconds; a wrong setting is refused before."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == "False"


def test_torch_loads_on_its_first_use():
    """The same module object, by attribute, by submodule and by name."""
    code = """
import sys
from wirelessfl.deferred import defer, is_loaded, load

defer("torch")
import torch
assert not is_loaded("torch")
before = torch
{use}
assert is_loaded("torch") and torch is before is sys.modules["torch"]
assert type(torch).__name__ == "module" and torch.ones(2).sum() == 2
defer("torch")  # no effect
assert is_loaded("torch")
"""
    uses = ["torch.zeros(1)", "from torch import nn", "import torch.nn.functional", "load('torch')"]
    running = [
        subprocess.Popen([sys.executable, "-c", code.format(use=use)], stderr=subprocess.PIPE)
        for use in uses
    ]
    for process in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors


def test_a_package_that_fails_to_load_is_not_kept(monkeypatch, tmp_path):
    """A second import tries again, and a package that is not installed has no effect."""
    (tmp_path / "broken_package.py").write_text("raise OSError('a library is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    deferred.defer("broken_package")
    module = sys.modules["broken_package"]
    assert isinstance(module, types.ModuleType)
    assert not deferred.is_loaded("broken_package")
    with pytest.raises(OSError, match="a library is missing"):
        module.something  # noqa: B018
    assert "broken_package" not in sys.modules
    deferred.defer("no_such_package")
    assert "no_such_package" not in sys.modules
    assert not deferred.is_loaded("no_such_package")
