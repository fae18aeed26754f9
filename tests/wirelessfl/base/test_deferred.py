"""Commands that do not train start without PyTorch."""

import subprocess
import sys
import types

import pytest

from wirelessfl.base import packages as deferred

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

for words in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(words.split())
    print("torch._C" in sys.modules, words, flush=True)
"""
"""Runs commands one after another, after what all of them need is imported."""


@pytest.fixture(scope="module")
def loaded():
    """Whether PyTorch is loaded after each command: once one loads it, also after the next ones."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *COMMANDS], capture_output=True, text=True, check=True
    )
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return {words: answer == "True" for answer, _, words in lines}


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_that_do_not_need_torch_do_not_load_it(words, loaded):
    """Loading takes seconds; a wrong setting is refused before."""
    assert loaded[words] is False


def test_the_list_of_commands_loads_no_large_package():
    code = "import sys; from wirelessfl.cli import main; main(['--help'])"
    code = f"try:\n {code}\nexcept SystemExit:\n print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "wirelessfl" in done.stderr.split()
    assert not {"channels", "numpy", "pydantic", "solvers"} & {*done.stderr.split()}


CODE = """
import sys
from wirelessfl.base.packages import defer, is_loaded, load

defer("{name}")
import {name}
assert not is_loaded("{name}")
before = {name}
{use}
assert is_loaded("{name}") and {name} is before is sys.modules["{name}"]
assert type({name}).__name__ == "module" and {name}.ones(2).sum() == 2
defer("{name}")  # no effect
assert is_loaded("{name}")
"""
"""Loads a deferred package by ``use``, which leaves the same module object."""


@pytest.mark.thorough
def test_torch_loads_on_its_first_use():
    subprocess.run(
        [sys.executable, "-c", CODE.format(name="torch", use="torch.zeros(1)")], check=True
    )


@pytest.mark.parametrize(
    "use", ["{}.zeros(1)", "from {} import nn", "import {}.nn.functional", "load('{}')"]
)
def test_packages_load_on_their_first_use(use, tmp_path, monkeypatch):
    """By attribute, by submodule and by name, with a package that imports its submodules."""
    name = "slow_" + "".join(filter(str.isalpha, use))
    folder = tmp_path / name / "nn"
    folder.mkdir(parents=True)
    (tmp_path / name / "__init__.py").write_text(
        "from numpy import ones, zeros\nfrom . import nn\n"
    )
    (folder / "__init__.py").write_text("from . import functional\n")
    (folder / "functional.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    exec(CODE.format(name=name, use=use.format(name)), {})


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
