"""The wheel has three packages, works without the checkout, and imports quickly."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python(*words, cwd, path, **kwargs):
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-P", *words]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, **kwargs
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The unpacked wheel outside the checkout, without files of an earlier build."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    for package in ("channels", "solvers", "wirelessfl", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, sources / package, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=sources, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder / "site")
    tops = {name.split("/")[0] for name in names}
    assert tops == {"channels", "solvers", "wirelessfl", "wirelessfl-0.1.0.dist-info"}
    assert {f"{top}/py.typed" for top in ("channels", "solvers", "wirelessfl")} <= set(names)
    assert "wirelessfl/results/report.html" in names
    return folder / "site"


def test_the_wheel_runs_outside_the_checkout(installed, tmp_path):
    """Packages are attributes in a new process, where nothing else has imported them."""
    where = "import wirelessfl as w, solvers, channels; print(w.__version__, w.__file__, "
    where += "solvers.__file__, channels.__file__, w.results.Runs, w.data.load_dataset)\n"
    flags = "--rounds 1 --local-steps 1 --clients 4 --cells 2 --threads 1 --out run"
    run = f"from wirelessfl.cli import main; main('run hist {flags}'.split())"
    shown = python("-c", where + run, cwd=tmp_path, path=installed, check=True).stdout
    assert shown.startswith("0.1.0 ")
    assert shown.count(str(installed)) == 3
    assert "Runs" in shown
    assert (tmp_path / "run" / "rows.jsonl").is_file()


def test_the_benchmarks_are_those_of_the_checkout(installed, tmp_path):
    """They are not in the wheel; a foreign package of their name is not taken for them."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "suite.py").write_text("raise RuntimeError('foreign')")
    words = ["-m", "wirelessfl", "bench", "solvers", "--repeats", "0"]
    of_the_wheel = python(*words, cwd=tmp_path, path=f"{installed}{os.pathsep}{tmp_path}")
    assert of_the_wheel.returncode == 2
    (line,) = of_the_wheel.stderr.splitlines()
    assert "the benchmarks are not part of the installed package" in line
    of_the_checkout = python(*words, cwd=tmp_path, path=f"{tmp_path}{os.pathsep}{ROOT}")
    assert "repeats is 0" in of_the_checkout.stderr


ABSENT = {
    "channels": "torch solvers wirelessfl scipy matplotlib",
    "solvers": "torch wirelessfl cvxpy gurobipy scipy.optimize",
    "wirelessfl": "torch cvxpy gurobipy sklearn matplotlib ray",
    "wirelessfl.data": "sklearn pooch requests matplotlib scipy PIL",
    "wirelessfl.models": "transformers peft tokenizers pyarrow",
    "wirelessfl.engine.assignment.bayes": "sklearn scipy.stats",  # by all commands
    "wirelessfl.runs.run": "cvxpy gurobipy sklearn matplotlib ray transformers peft",
}
"""Slow modules that a package does not load, nor the packages before it."""


def test_imports_stay_quick(tmp_path):
    """Importing the packages, one after another, loads no slow modules."""
    lines = ["import importlib, sys"]
    for package, names in ABSENT.items():
        lines.append(f"importlib.import_module({package!r})")
        lines.append(f"print([name for name in {names.split()} if name in sys.modules])")
    shown = python("-c", "\n".join(lines), cwd=tmp_path, path=ROOT, check=True).stdout
    assert shown.splitlines() == ["[]"] * len(ABSENT)


def test_a_copy_without_metadata_has_an_unknown_version(tmp_path):
    """The version is unknown with ``-S``, which hides installed distributions."""
    (tmp_path / "wirelessfl" / "base").mkdir(parents=True)
    base = ("__init__", "import_paths", "packages")
    for name in ("__init__.py", *(f"base/{module}.py" for module in base)):
        copy = tmp_path / "wirelessfl" / name
        copy.write_bytes((ROOT / "wirelessfl" / name).read_bytes())
    code = "import wirelessfl; print(wirelessfl.__version__, '__version__' in dir(wirelessfl))"
    shown = python("-S", "-c", code, cwd=tmp_path, path=tmp_path, check=True)
    assert shown.stdout == "0+unknown True\n"


def test_a_foreign_package_named_channels_is_reported(tmp_path):
    """The error names the foreign package's folder and suggests a separate environment."""
    (tmp_path / "channels.py").write_text("version = 'another project'")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    for words in (["-m", "wirelessfl", "list"], ["-c", "import wirelessfl; wirelessfl.run"]):
        failed = python(*words, cwd=tmp_path, path=path)
        assert failed.returncode != 0
        last = failed.stderr.strip().splitlines()[-1]
        assert "'channels'" in last
        assert str(tmp_path) in last
        assert "separate environment" in last
