"""Objects by import path: files are modules of their own, and all errors are one line."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import wirelessfl
from wirelessfl.algorithms import find_algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import absolute, file_of, is_import_path, module_of
from wirelessfl.base.registry import import_path
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import load_dataset

POINT = "class Point:\n    x = {}\n"
RULE = """
from dataclasses import dataclass
from wirelessfl.extend import FedAvg

@dataclass(frozen=True)
class Rule(FedAvg):
    mu: float = 1.0
"""
MODEL = """
from torch import nn
class Net(nn.Sequential):
    def __init__(self, shape, classes):
        super().__init__(nn.Flatten(), nn.Linear(64, classes))
"""
DATA = """
import torch
from wirelessfl.data import Dataset
def points(data_dir):
    x = torch.linspace(-1, 1, 64 * 64).reshape(64, 1, 8, 8)
    return Dataset("points", x, torch.arange(64) % 2, x, torch.arange(64) % 2, classes=2)
"""


@pytest.mark.parametrize("name", ["/a/b.py", "/a b/c.d/e.py", "/a/%2E/é.py", "/a/b.c.py"])
def test_the_name_of_a_files_module_encodes_its_path(name):
    module = module_of(name)
    assert "." not in module
    assert file_of(module) == Path(name)
    assert file_of("my.module") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m:f", True),
        ("pkg.m:f", True),
        ("m.py:f", True),
        ("./a/m.py:f", True),
        ("fcnn", False),
        ("./my:images", False),
        ("/data/m.py", False),
    ],
)
def test_import_paths_are_told_from_names_and_folders(name, expected):
    assert is_import_path(name) == expected


def test_only_paths_of_files_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("../m.py:f") == f"{tmp_path.parent}/m.py:f"
    for name in ("m:f", "fcnn", "./my:images", 3, None):
        assert absolute(name) == name


def test_files_of_equal_names_are_different_modules(tmp_path):
    found = []
    for number, folder in enumerate(("one", "two.five")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "random.py").write_text(POINT.format(number))
        found.append(import_path("thing", f"{tmp_path / folder}/random.py:Point"))
    assert [kind.x for kind in found] == [0, 1]
    assert import_path("thing", f"{tmp_path}/one/random.py:Point") is found[0]


def test_an_object_of_a_file_is_unpickled_in_another_process(tmp_path):
    (tmp_path / "point.py").write_text(POINT.format(5))
    sent = pickle.dumps(import_path("thing", f"{tmp_path}/point.py:Point")())
    code = f"import pickle, wirelessfl; print(pickle.loads({sent!r}).x)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "5\n"


def test_files_are_accepted_for_every_kind(tmp_path, monkeypatch):
    """The stored paths are absolute, so the run can be resumed from another folder."""
    monkeypatch.chdir(tmp_path)
    for name, code in (("rule", RULE), ("net", MODEL), ("points", DATA)):
        Path(f"{name}.py").write_text(code)
    words = ["run", "./rule.py:Rule", "--mu", "2", "--model", "net.py:Net", "--out", "run"]
    words += ["--dataset", "./points.py:points", "--clients", "2", "--rounds", "2"]
    assert main([*words, "--local-steps", "1", "--threads", "1"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    stored = wirelessfl.resume(tmp_path / "run", trust=True).config
    assert stored.named("algorithm") == f"{tmp_path}/rule.py:Rule"
    assert stored.algorithm.mu == 2
    assert stored.named("model") == f"{tmp_path}/net.py:Net"
    assert stored.dataset.name == f"{tmp_path}/points.py:points"
    assert stored.dataset.title == "points.py:points"
    assert stored.algorithm.title == f"{tmp_path}/rule.py:Rule"
    assert find_algorithm(f"{tmp_path}/rule.py:Rule").name == "rule"
    monkeypatch.chdir(tmp_path)
    local = Config.from_flags("hist", local="./rule.py:Rule", mu=3)
    assert local.tables["algorithm"]["local"] == f"{tmp_path}/rule.py:Rule"
    task = Config.from_flags("fedast", task=["points.py:points,model=net.py:Net"])
    assert task.tasks.keys() == {"points.py:points"}
    assert task.task[0]["model"] == f"{tmp_path}/net.py:Net"


RAISES = {
    "exits": ("import sys\nsys.exit(3)\n", "its code calls sys.exit"),
    "divides": (
        "x = 1 / 0\n",
        "ZeroDivisionError: division by zero (in <module>, divides.py, line 1)",
    ),
    "lacks": ("import no_such_module\n", "No module named 'no_such_module' (in <module>, lacks.py"),
    "wrong": ("def f(:\n", "SyntaxError: "),
    "stops": (
        "class Stop(BaseException): ...\nraise Stop\n",
        "Stop (in <module>, stops.py, line 2)",
    ),
    "thawed": (
        "from dataclasses import dataclass\nfrom wirelessfl.extend import FedAvg\n"
        "@dataclass\nclass Thawed(FedAvg): pass\n",
        "from a frozen one: write @dataclass(frozen=True) (in <module>, thawed.py, line 3)",
    ),
    "lines": (
        "raise ValueError('first\\nsecond')\n",
        "ValueError: first second (in <module>, lines.py",
    ),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RAISES)
@pytest.mark.parametrize("form", ["{}:f", "./{}.py:f"])
def test_whatever_an_import_raises_is_one_line(name, form, tmp_path, monkeypatch, capsys):
    code, message = RAISES[name]
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    for words in (["--model"], ["--dataset"], ["--split"], ["--uplink"]):
        assert main(["run", "fedavg", *words, form.format(name)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("ConfigError: ")
        assert "cannot be imported: " in error
        assert message in error
        assert error.count("\n") == 1


def test_an_interrupt_during_an_import_is_no_error(tmp_path):
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        import_path("model", f"{tmp_path}/slow.py:f")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (":", "there is no module ''"),
        (".m:f", "there is no module '.m'"),
        ("no.such:f", "there is no module 'no.such'"),
        ("/no/such.py:f", "there is no file '/no/such.py'"),
        ("json:f", "module 'json' has no 'f'"),
    ],
)
def test_a_missing_object_is_named(path, message):
    with pytest.raises(ConfigError, match=r"or as file\.py:name") as caught:
        import_path("model", path)
    assert f"model {path!r} cannot be imported: {message}. " in str(caught.value)


CALLED = """
import sys
from dataclasses import dataclass
from wirelessfl.extend import IID, Tdma

def divides(*args): return 1 / 0
def exits(*args): sys.exit(3)
def opens(*args): return open("/no/such/file")

@dataclass(frozen=True)
class Split(IID):
    def __post_init__(self): raise KeyError("of the user")

@dataclass(frozen=True)
class Uplink(Tdma):
    x: "NoSuchName" = 1
"""


@pytest.mark.parametrize(
    ("flag", "name", "message"),
    [
        ("--model", "divides", "ZeroDivisionError: division by zero (in divides, called.py, line"),
        ("--model", "exits", "its code calls sys.exit"),
        ("--dataset", "divides", "ZeroDivisionError: division by zero (in divides, called.py"),
        ("--dataset", "exits", "its code calls sys.exit"),
        ("--dataset", "opens", "FileNotFoundError: [Errno 2] No such file or directory"),
        ("--split", "Split", "KeyError: 'of the user' (in __post_init__, called.py"),
        ("--uplink", "Uplink", "NameError: name 'NoSuchName' is not defined"),
    ],
)
def test_whatever_a_users_object_raises_is_one_line(
    flag, name, message, tmp_path, monkeypatch, capsys
):
    (tmp_path / "called.py").write_text(CALLED)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "fedavg", "--rounds", "1", flag, f"./called.py:{name}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("DataError: " if flag == "--dataset" else "ConfigError: ")
    assert message in error
    assert error.count("\n") == 1


def test_errors_of_data_remain_errors_of_data(tmp_path):
    (tmp_path / "texts.py").write_text(
        "from wirelessfl import DataError\ndef f(folder): raise DataError('no texts')\n"
    )
    with pytest.raises(wirelessfl.DataError, match=r"^no texts$"):
        load_dataset(f"{tmp_path}/texts.py:f")
