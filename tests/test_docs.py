"""The README and the pages under docs/: examples run, and links and file names are valid."""

import inspect
import json
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import wirelessfl
from tests.docs.pages import GUIDES, PAGES, ROOT, blocks, run_blocks
from tests.drawn import legend, recorded


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_existing_targets(page):
    """The local targets of links and images exist."""
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)", text) + re.findall(r'src="([^"]+)"', text)
    for target in targets:
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_on_pages_exist(page):
    """A named file exists: by its path from the root or a package, or by its name alone."""
    text = page.read_text(encoding="utf-8")
    folders = re.findall(r"`((?:wirelessfl|channels|solvers|tests|experiments)/[\w/]*/)`", text)
    assert [name for name in folders if not (ROOT / name).is_dir()] == []
    missing = [
        name
        for name in re.findall(r"`([\w/]+\.py)[:`]", text)
        if not any(
            (folder / name).exists() or ("/" not in name and [*folder.rglob(name)])
            for folder in (ROOT / "wirelessfl", ROOT / "solvers", ROOT / "channels", ROOT)
        )
    ]
    assert missing == []


PUBLIC = {
    *("channels", "solvers", "wirelessfl"),
    *(f"wirelessfl.{name}" for name in (*wirelessfl.PUBLIC, *dir(wirelessfl))),
    *(f"solvers.{path.parent.name}" for path in (ROOT / "solvers").glob("*/__init__.py")),
}
"""Modules to import from, packages of backends of ``solvers``, and names of ``wirelessfl``."""
IMPORT = re.compile(r"\b(?:from|import) ((?:channels|solvers|wirelessfl)\b[\w.]*)")
DOTTED = re.compile(r"\b(wirelessfl\.[a-zA-Z]\w*)\b(?!\.com)")


def private_paths(text):
    """Modules that a text imports, or names with dots, that are not public."""
    return {*IMPORT.findall(text), *DOTTED.findall(text)} - PUBLIC


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_only_public_names(page):
    assert private_paths(page.read_text(encoding="utf-8")) == set()


def test_examples_in_docstrings_import_only_public_names():
    """All other modules may move."""
    files = [
        path
        for name in ("wirelessfl", "channels", "solvers")
        for path in (ROOT / name).rglob("*.py")
    ]
    lines = {line for path in files for line in path.read_text(encoding="utf-8").splitlines()}
    examples = "\n".join(line for line in lines if line.lstrip().startswith((">>>", "... ")))
    assert private_paths(examples) == set()


def test_a_private_path_is_seen():
    assert private_paths("from wirelessfl.air.failures import Failing")
    assert private_paths("see `wirelessfl.base.rows`") == {"wirelessfl.base"}
    assert private_paths("see `wirelessfl.run` and `wirelessfl.results.Runs`") == set()


def test_the_readme_is_one_screen_and_its_example_runs(tmp_path, monkeypatch, capsys):
    """At most 6 KB; ten lines of Python train over one network with three uplinks."""
    monkeypatch.chdir(tmp_path)
    assert PAGES[0].stat().st_size <= 6 * 1024
    ((code),) = [code for language, _, code in blocks(PAGES[0]) if language == "python"]
    assert len(code.replace("\n\n", "\n").splitlines()) <= 10
    run_blocks([("python", None, code.replace("rounds=20", "rounds=8"))])
    assert re.findall(r"(\w+): 80 % after \d", capsys.readouterr().out) == [
        "tdma",
        "ofdma",
        "aircomp",
    ]


def test_the_examples_of_a_first_run_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    python = [code for language, _, code in blocks(ROOT / "docs/start/first-run.md") if language]
    assert len(python) == 2
    run_blocks([("python", None, code) for code in python])
    shown = capsys.readouterr().out
    assert "optimal" in shown
    assert "optimized masks: accuracy" in shown


@pytest.mark.thorough
def test_the_examples_of_runs_run(tmp_path, monkeypatch, capsys):
    """Runs are compared in a figure; a sweep and single runs are read by code and commands."""
    from wirelessfl.cli import main

    monkeypatch.chdir(tmp_path)
    page = [*blocks(GUIDES / "after-the-run.md"), *blocks(GUIDES / "sweeps.md")]
    files = {file: code for _, file, code in page if file}
    Path("compare.py").write_text(files["compare.py"].replace('"rounds": 10', '"rounds": 2'))
    with recorded() as figures:
        runpy.run_path("compare.py")
    assert legend(figures["comparison"]) == ["HFedAvg", "HIST"]
    assert "costs until accuracy 0.8" in capsys.readouterr().out
    small = ["--clients", "8", "--rounds", "1", "--local-steps", "1"]
    for out in ("runs/first", "runs/second"):
        assert main(["run", "hist", *small, "--lr", "0.05", "--out", out]) == 0
    (sweep,) = [code.split(" > ")[0] for _, file, code in page if not file and " > " in code]
    (reading,) = [code for _, file, code in page if not file and "wirelessfl compare" in code]
    more = ["--jobs", "1", "--cells", "2,4", "--seed", "1,2"]  # the last value of a flag counts
    assert main([*shlex.split(sweep)[1:], *small, *more]) == 0
    capsys.readouterr()
    Path("read_sweep.py").write_text(files["read_sweep.py"])
    runpy.run_path("read_sweep.py")
    lines = capsys.readouterr().out.splitlines()
    labels = {f"N = {n}, step size {lr}" for n in (2, 4) for lr in (0.01, 0.05)}
    assert {line.split(" [")[0] for line in lines} == labels
    assert all(line.count("'0.") == 2 for line in lines), "two seeds each"
    Path("read.py").write_text(files["read.py"])
    runpy.run_path("read.py")
    assert "hist on digits: 1 round" in capsys.readouterr().out
    with recorded() as figures:
        for line in reading.splitlines():
            assert main(shlex.split(line)[1:]) == 0, line
    assert figures["loss"].axes[0].get_xlabel() == "energy per client (J)"
    assert Path("model.safetensors").stat().st_size > 0
    capsys.readouterr()
    Path("sweep.py").write_text(files["sweep.py"])
    runpy.run_path("sweep.py")
    assert len(capsys.readouterr().out.splitlines()) == 8, "two methods, seeds and points"


def test_the_examples_of_observers_run(tmp_path, monkeypatch, capsys):
    """One ends its run, and one writes how far the model moves, which before row 0 is nothing."""
    monkeypatch.chdir(tmp_path)
    files = {file: code for _, file, code in blocks(GUIDES / "observers.md") if file}
    for name in ("stopping.py", "distance.py"):
        Path(name).write_text(files[name])
        runpy.run_path(name)
    first, *table = capsys.readouterr().out.split()
    assert first == "ended"
    rows = [line.split(",") for line in table[-4:]]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    moved = [float(row[2]) for row in rows]
    assert moved[0] == 0
    assert min(moved[1:]) > 0


def test_the_examples_of_a_study_run(tmp_path, monkeypatch, capsys):
    """The study of the first page trains on its own parts, and the second page reads a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run_blocks(
        (language, file, code.replace("rounds=20", "rounds=2"))
        for name in ("start/own-study", "guides/python")
        for language, file, code in blocks(ROOT / "docs" / f"{name}.md")
    )
    with recorded() as figures:
        runpy.run_path("own.py")
    assert "fedavg on data: 2 rounds, accuracy" in capsys.readouterr().out
    assert figures["own"].axes[0].get_ylabel() == "worst class"


def test_the_example_of_prices_runs(tmp_path, monkeypatch, capsys):
    """Two uplinks are priced without data; with OFDMA clients send all the time: it is faster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WIRELESSFL_DATA", str(tmp_path))
    files = {file: code for _, file, code in blocks(GUIDES / "prices.md") if file}
    Path("price.py").write_text(files["price.py"])
    runpy.run_path("price.py")
    found = re.findall(r"^([\d.]+) s for 20 rounds$", capsys.readouterr().out, re.M)
    tdma, ofdma = map(float, found)
    assert ofdma < tdma
    Path("elsewhere.py").write_text(files["elsewhere.py"])
    runpy.run_path("elsewhere.py")
    shown = capsys.readouterr().out
    assert "as trained" in shown
    assert "(100, 4)" in shown


def test_the_examples_of_tasks_run(tmp_path, monkeypatch, capsys):
    """The TOML tables, the Python example, the timeline and the custom algorithm work."""
    from wirelessfl.cli import main
    from wirelessfl.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = blocks(ROOT / "docs" / "guides" / "tasks.md")
    (table,) = [code for language, _, code in page if language == "toml"]
    Path("tasks.toml").write_text(table)
    tasks = Config.from_toml(Path("tasks.toml")).tasks
    assert {name: own.evaluation.target for name, own in tasks.items()} == {
        "mnist": 0.93,
        "fashion-mnist": 0.82,
    }
    commands = [
        shlex.split(code.replace("\\\n", ""))[1:]
        for language, file, code in page
        if not (language or file)
    ]
    run_blocks(page)
    shown = capsys.readouterr().out
    assert "quick: 0." in shown
    assert "slow: 0." in shown
    assert [words[0] for words in commands] == ["run", "timeline", "run"]
    with recorded() as figures:
        assert main([*commands[1], "--picture", "drawn.png"]) == 0
    (panel,) = figures["drawn"].axes
    assert panel.get_xlabel() == "simulated time (s)"
    assert legend(figures["drawn"])[:2] == list(tasks)
    assert Path("drawn.png").is_file()
    small = ["--clients", "6", "--rounds", "4", "--local-steps", "1", "--threads", "1"]
    assert main([*commands[2], *small, "--out", "own"]) == 0
    with pytest.raises(SystemExit):  # the flags are valid, and --help exits
        main([*commands[0], "--help"])


@pytest.mark.thorough
def test_the_examples_of_the_radio_run(tmp_path, monkeypatch, capsys):
    """Budgets are printed, with the numbers of the worked example, and every network trains."""
    from wirelessfl.cli import main

    monkeypatch.chdir(tmp_path)
    page = [*blocks(GUIDES / "radio.md"), *blocks(GUIDES / "decisions.md")]
    small = ["--local-steps", "1", "--rounds", "1", "--threads", "1", "--json"]
    printed, energies = [], []
    for language, file, code in page:
        run_blocks([(language, file, code)])
        energies += re.findall(r"[\d.]+ J per client", capsys.readouterr().out)
        for line in () if language or file else code.splitlines():
            words = shlex.split(line)[1:]
            out = ["--out", f"run{len(printed)}"]
            more = {"budget": ["--json"], "timeline": [], "plan": []}.get(words[0], [*small, *out])
            with recorded(laid_out=False):
                assert main([*words, *more]) == 0
            printed.append(capsys.readouterr().out)
    assert len(printed) == 15
    (link,) = json.loads(printed[0])["clients"]
    assert round(link["path loss [dB]"], 2) == 121.43
    assert round(link["mean SNR [dB]"], 2) == -4.44
    text = "".join((GUIDES / name).read_text("utf-8") for name in ("radio.md", "decisions.md"))
    assert "121.43 dB" in text
    assert "-4.44 dB" in text
    assert energies == ["2.3 J per client", "12.3 J per client", "1.8 J per client"]
    assert "12.3 instead of 2.3 J per client" in text


def test_the_examples_of_devices_run(tmp_path, monkeypatch, capsys):
    """Devices use the joules that were measured: the page asserts it."""
    monkeypatch.chdir(tmp_path)
    run_blocks(blocks(GUIDES / "devices-and-energy.md"))
    printed = capsys.readouterr().out
    assert "1.80 J" in printed
    assert "0.020 s and 0.128 J per sample" in printed


def test_the_example_of_submodels_runs(tmp_path, monkeypatch, capsys):
    """The fastest widths reach the target in less simulated time than the full model."""
    monkeypatch.chdir(tmp_path)
    run_blocks(blocks(ROOT / "docs" / "guides" / "submodels.md"))
    full, fastest = re.findall(r"60 % after \d+ rounds, (\S+) s", capsys.readouterr().out)
    assert float(fastest) < float(full)


@pytest.mark.thorough
def test_the_examples_of_sessions_run(tmp_path, monkeypatch, capsys):
    """The Python example, the trace and the custom warm start work."""
    from wirelessfl.cli import main
    from wirelessfl.engine.sessions.traces import read_trace

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = blocks(ROOT / "docs" / "guides" / "sessions.md")
    plain = [code for language, file, code in page if not (language or file)]
    (stays,) = [code for code in plain if code.startswith("client,")]
    Path("stays.csv").write_text(stays)
    assert read_trace(Path("stays.csv"), 3).initial().tolist() == [True, True, False]
    run_blocks(page)
    shown = capsys.readouterr().out
    assert "previous: session 4, 0." in shown
    assert "proposed: session 4, 0." in shown
    commands = [shlex.split(c.replace("\\\n", ""))[1:] for c in plain if c.startswith("wire")]
    assert len(commands) == 2
    small = ["--clients", "6", "--local-steps", "1", "--threads", "1"]
    assert main([*commands[1], *small, "--out", "own"]) == 0
    assert "accuracy when clients change" in capsys.readouterr().out
    with pytest.raises(SystemExit):  # the flags are valid, and --help exits
        main([*commands[0], "--help"])


@pytest.mark.thorough
def test_the_solver_studies_run_and_draw(tmp_path, monkeypatch, capsys):
    """Each study has about 20 lines, as the README promises."""
    monkeypatch.chdir(tmp_path)
    found = [
        (file, code)
        for page in sorted(GUIDES.glob("solvers*.md"))
        for _, file, code in blocks(page)
        if file
    ]
    assert len(found) == 17
    printed = {}
    with recorded(rendered=True) as figures:
        for file, code in found:
            assert len(code.splitlines()) <= 26
            few = code.replace("standard_normal((40,", "standard_normal((2,")  # of 40 problems
            few = few.replace("standard_normal((5,", "standard_normal((1,")  # of 5
            few = few.replace("(20, number)", "(2, number)")  # of 20
            few = few.replace("range(1, 6)", "range(1, 2)")  # of 5 networks
            few = few.replace("[2, 5, 10, 15, 20, 30]", "[2, 5]")  # of 6 numbers of clients
            few = few.replace("(-10, 0, 10)", "(0,)")  # of 3 SNRs
            Path(file).write_text(few)
            runpy.run_path(file, run_name="__main__")
            printed[file] = capsys.readouterr().out.splitlines()
    three = ("selection_study.py", "masks_and_energy_study.py", "widths_and_bands_study.py")
    for file in (*three, "resource_blocks_study.py"):
        assert len(printed[file]) == 3, "one line per count or deadline"
    stated = (GUIDES / "solvers-bands.md").read_text(encoding="utf-8")
    for share in re.findall(r"([\d.]+)%", " ".join(printed["resource_blocks_study.py"][::2])):
        assert re.search(rf"(?<![\d.]){share}[ ,]", stated), "the text has the shares of the study"
    assert len(printed["sizes_by_time_study.py"]) == 4, "one line per access"
    assert len(printed["access_study.py"]) == 6, "one line per access"
    assert len(printed["cells_study.py"]) == 5, "one line per kind of bands or rule"
    assert sum("below equal shares" in line for lines in printed.values() for line in lines) == 3
    names = {"beamforming", "mask-sizes", "widths", "bands", "energy", "masks-and-bands"}
    assert set(figures) == names
    for name, figure in figures.items():
        pixels = imread(f"{name}.png")[..., :3]
        colours = len(np.unique(pixels.reshape(-1, 3), axis=0))
        assert colours > 50, "the figure has lines and text"
        for panel in figure.axes:
            assert panel.get_xlabel()
            assert panel.get_ylabel()
            assert any(len(line.get_xdata()) > 1 for line in panel.get_lines()), name


@pytest.mark.parametrize("page", PAGES[:2], ids=lambda page: page.name)
def test_named_targets_are_those_of_the_makefile(page):
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = {*re.search(r"^\.PHONY: (.*)", make, re.MULTILINE)[1].split()}
    named = {*re.findall(r"\bmake (\w[\w-]*)", page.read_text(encoding="utf-8"))} - {"on"}
    assert len(named) > 1
    assert named <= known


def test_the_example_of_theory_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks(blocks(ROOT / "docs" / "results" / "theory.md"))
    assert re.search(r"step size at most 0\.00\d+; mean squared gradient", capsys.readouterr().out)


def test_theorems_are_those_of_the_table():
    """Every function is in the table; its classes hold arguments and terms."""
    from wirelessfl import theory

    text = (ROOT / "docs" / "results" / "theory.md").read_text(encoding="utf-8")
    named = {*re.findall(r"`(\w+)`", text)}
    functions = {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}
    assert functions <= named


def test_the_table_of_extras_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "start" / "index.md").read_text(encoding="utf-8")
    extras = project["optional-dependencies"].keys() - {"test", "extras", "peers"}  # of developers
    assert {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)} == extras


def test_the_citation_has_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {project['version']}" in cited
