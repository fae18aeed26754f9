"""Runs of edited code or data are told from runs of the present ones."""

import importlib
import json
import os
import shutil
import sys

import numpy as np
import pytest
import torch

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.sources import NO_SOURCE, source_hashes
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs.folder import named_files
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.folder.named_files import named_hashes
from wirelessfl.runs.kept import is_finished, kept_folder, kept_run
from wirelessfl.runs.sweep import SweepError, sweep

MODEL = """
from torch import nn
def make(shape, classes):
    from own_layers.body import width
    n = width()
    return nn.Sequential(nn.Flatten(), nn.Linear(64, n), nn.ReLU(), nn.Linear(n, classes))
"""
SMALL = {"clients": 2, "rounds": 2, "local_steps": 1, "threads": 1, "chunk": 2}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Folder of the module own_model, which imports a package in a function."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_model.py").write_text(MODEL)
    (tmp_path / "own_layers").mkdir()
    (tmp_path / "own_layers" / "__init__.py").write_text("")
    (tmp_path / "own_layers" / "body.py").write_text(
        "from . import sizes\nfrom .sizes import width\n"
    )
    (tmp_path / "own_layers" / "sizes.py").write_text("import json\ndef width(): return 8\n")
    (tmp_path / "own_layers" / "other.py").write_text("")
    yield tmp_path
    forget()


def forget():
    """As in a new process, the user's modules are not loaded."""
    for name in [name for name in sys.modules if "own_" in name]:
        del sys.modules[name]
    importlib.invalidate_caches()


def edit(file, old, new):
    """Replace text in a file, and forget the modules."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    forget()


def config(**flags):
    return Config.from_flags("fedavg", **SMALL | {"model": "own_model:make"} | flags)


def neurons(result):
    return len(result.params["1.bias"])


def test_a_sweep_runs_edited_code_and_keeps_the_old_run(own):
    """Edits of the module, or of one that it imports, give a new folder; undone, the old one."""
    sizes, model = own / "own_layers" / "sizes.py", own / "own_model.py"
    (first,) = sweep([config()], own / "runs")
    assert neurons(first) == 8
    edit(sizes, "8", "16")
    assert not is_finished(config(), own / "runs")
    (second,) = sweep([config()], own / "runs")
    assert neurons(second) == 16
    edit(model, "nn.ReLU", "nn.Tanh")
    (third,) = sweep([config()], own / "runs")
    assert len({first.directory, second.directory, third.directory}) == 3
    edit(model, "nn.Tanh", "nn.ReLU")
    edit(sizes, "16", "8")
    before = (first.directory / "rows.jsonl").stat().st_mtime_ns
    (again,) = sweep([config()], own / "runs")
    assert again.directory == first.directory
    assert (again.directory / "rows.jsonl").stat().st_mtime_ns == before


def test_files_that_are_not_imported_do_not_count(own):
    before = settings_hash(config())
    (own / "own_layers" / "other.py").write_text("# edited\n")
    forget()
    assert settings_hash(config()) == before
    hashes = named_hashes(config())["model own_model:make"]
    assert hashes.keys() == {
        "own_model.py",
        *(f"own_layers/{name}.py" for name in ("__init__", "body", "sizes")),
    }


def test_hashes_do_not_depend_on_what_is_loaded(own):
    before = settings_hash(config())
    for name in ("own_layers.body", "own_layers.sizes"):
        importlib.import_module(name)
    assert settings_hash(config()) == before


def test_the_loaded_code_counts_not_the_file(own):
    """In a session, an edited file has an effect once its module is loaded again."""
    before = settings_hash(config())
    (own / "own_model.py").write_text(MODEL.replace("nn.ReLU", "nn.Tanh"))
    assert settings_hash(config()) == before
    importlib.reload(sys.modules["own_model"])
    assert settings_hash(config()) != before


def halted(own, halt_at, **flags):
    """Folder of a run that was interrupted after two rows, and what it said."""
    settings = config(rounds=4, checkpoint_seconds=0, out=own / "run", **flags)
    notes = []
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, on_row=halt_at(2), on_note=notes.append)
    return own / "run", notes


def test_resume_refuses_edited_code(own, halt_at, same):
    """The message names setting, file and remedies; the restored code finishes the run."""
    folder, notes = halted(own, halt_at)
    assert notes == [f"interrupted; to resume: wirelessfl resume {folder} --trust"]
    edit(own / "own_layers" / "sizes.py", "json", "csv")
    with pytest.raises(ConfigError) as caught:
        wirelessfl.resume(folder, trust=True)
    assert str(caught.value) == (
        f"{folder}: model own_model:make: own_layers/sizes.py has changed since the run began. "
        f"Restore it, or start a new run: wirelessfl run --config {folder}/config.toml --out NEW "
        "--trust"
    )
    edit(own / "own_layers" / "sizes.py", "csv", "json")
    whole = wirelessfl.run(config(rounds=4))
    same(wirelessfl.resume(folder, trust=True), whole)


@pytest.mark.parametrize("content", ["equal", "another", "missing"])
def test_a_run_finds_its_file_of_code_in_the_current_folder(
    own, halt_at, same, tmp_path, monkeypatch, content
):
    """As on another machine, where the path of the file does not exist."""
    (tmp_path / "here").mkdir()
    file = own / "own_model.py"
    folder, _ = halted(own, halt_at, model=f"{file}:make")
    whole = wirelessfl.run(config(rounds=4, model=f"{file}:make"))
    file.rename(tmp_path / "here" / "own_model.py")
    forget()
    monkeypatch.chdir(tmp_path / "here")
    if content == "equal":
        same(wirelessfl.resume(folder, trust=True), whole)
        assert wirelessfl.load(folder).model(trust=True)
        wirelessfl.resume(folder, rounds=5, trust=True)
        edit(tmp_path / "here" / "own_model.py", "nn.ReLU", "nn.Tanh")
        with pytest.raises(ConfigError, match=r"own_model\.py:make: own_model\.py has changed"):
            wirelessfl.resume(folder, rounds=6, trust=True)
        (tmp_path / "there").mkdir()
        shutil.move(tmp_path / "here" / "own_model.py", tmp_path / "there")
        forget()
        monkeypatch.chdir(tmp_path / "there")
        with pytest.raises(ConfigError, match=r"own_model\.py:make: own_model\.py has changed"):
            wirelessfl.resume(folder, rounds=6, trust=True)
        return
    if content == "missing":
        monkeypatch.chdir(tmp_path)
    else:
        edit(tmp_path / "here" / "own_model.py", "nn.ReLU", "nn.Tanh")
    message = {
        "missing": rf"there is no file '{file}'\..* of a stored run, the file may be in",
        "another": r"here/own_model\.py:make: own_model\.py has changed since the run began",
    }[content]
    with pytest.raises(ConfigError, match=message):
        wirelessfl.resume(folder, trust=True)
    with pytest.raises(ConfigError, match="importing it runs code"):
        wirelessfl.resume(folder)


def test_reading_a_finished_run_of_old_code_says_so(own):
    result = wirelessfl.run(config(out=own / "run"))
    edit(own / "own_model.py", "nn.ReLU", "nn.Tanh")
    notes = []
    again = wirelessfl.resume(own / "run", trust=True, on_note=notes.append)
    assert again.rows == result.rows
    assert notes == [
        "model own_model:make: own_model.py has changed since this run; its rows are from the old "
        "version."
    ]


def test_a_run_without_hashes_is_resumed(own, halt_at):
    """As written by versions that stored none."""
    folder, _ = halted(own, halt_at)
    about = json.loads((folder / "about.json").read_text())
    assert about.pop("named").keys() == {"model own_model:make"}
    del about["checksum"]
    (folder / "about.json").write_text(json.dumps(about))
    edit(own / "own_layers" / "sizes.py", "json", "csv")
    assert wirelessfl.resume(folder, trust=True).rows[-1]["round"] == 4


@pytest.mark.parametrize("junk", ['{"named": 3}', '{"named": {"model own_model:make": 3}}', "{"])
def test_damaged_hashes_are_named(own, junk):
    wirelessfl.run(config(out=own / "run"))
    (own / "run" / "about.json").write_text(junk)
    with pytest.raises(ConfigError, match=r"about\.json is damaged"):
        wirelessfl.resume(own / "run", trust=True)


def test_every_named_object_has_hashes(own, tmp_path):
    (tmp_path / "own_rules.py").write_text(
        "from dataclasses import dataclass\n"
        "from wirelessfl.extend import FedAvg, IID\n"
        "from wirelessfl.data import load_dataset\n"
        "@dataclass(frozen=True)\nclass Rule(FedAvg): pass\n"
        "@dataclass(frozen=True)\nclass Split(IID): pass\n"
        "def data(folder): return load_dataset('digits', folder)\n"
        "def noise(x, generator): return x\n"
    )
    rule, split, data = (f"own_rules:{name}" for name in ("Rule", "Split", "data"))
    own = {"model": "own_model:make", "split": split, "dataset": data}
    run = Config.from_flags(rule, **own, augment="own_rules:noise")
    assert named_hashes(run).keys() == {
        f"algorithm {rule}",
        "model own_model:make",
        f"split {split}",
        f"dataset {data}",
        "augment own_rules:noise",
    }
    local = Config.from_flags("hist", local=rule)
    assert named_hashes(local).keys() == {f"local {rule}"}
    tasks = Config.from_flags(
        "fedast", task=["digits,model=own_model:make", f"{data},split={split}"]
    )
    assert named_hashes(tasks).keys() == {
        "model own_model:make",
        f"dataset {data}",
        f"split {split}",
    }
    assert named_hashes(run)[f"split {split}"].keys() == {"own_rules.py"}


def test_settings_without_code_and_files_have_no_hashes(tmp_path):
    settings = Config.from_flags("fedavg", **SMALL | {"out": tmp_path / "run"})
    assert named_hashes(settings) == {}
    result = wirelessfl.run(settings)
    assert "named" not in json.loads((result.directory / "about.json").read_text())


def test_code_without_a_source_file_is_reported(monkeypatch, tmp_path):
    module = type(sys)("own_session")
    module.make = lambda shape, classes: torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, classes)
    )
    monkeypatch.setitem(sys.modules, "own_session", module)
    settings = config(model="own_session:make", out=tmp_path / "run")
    assert named_hashes(settings)["model own_session:make"] == {"own_session": NO_SOURCE}
    notes = []
    wirelessfl.run(settings, on_note=notes.append)
    assert (
        "model own_session:make has no source file: changes to its code are not detected." in notes
    )


def test_modules_of_python_and_of_this_package_do_not_count(tmp_path, monkeypatch):
    """Nor do installed packages; a folder without __init__.py belongs to the user."""
    (tmp_path / "own_space").mkdir()
    (tmp_path / "own_space" / "part.py").write_text(
        "import json, torch.nn, wirelessfl.config, no_such_module\nimport own_space.rest\n"
    )
    (tmp_path / "own_space" / "rest.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert source_hashes("own_space.part").keys() == {"own_space/part.py", "own_space/rest.py"}


def trace_config(trace, **flags):
    return Config.from_flags("fedavg", sessions=2, presence="trace", trace=trace, **SMALL | flags)


STAYS = "client,join,leave\n0,0,\n1,0,\n"


def test_data_edited_during_a_sweep_is_a_failure(tmp_path):
    trace = tmp_path / "stays.csv"
    trace.write_text(STAYS)

    def edit_data(place, row):
        trace.write_text(STAYS.replace("1,0,", "1,0,9"))

    configs = [trace_config(trace, seed=seed, rounds=1) for seed in (1, 2)]
    with pytest.raises(SweepError, match="have changed since the sweep began") as caught:
        sweep(configs, tmp_path / "runs", on_row=edit_data)
    assert [failure.config.run.seed for failure in caught.value.failures] == [2]


def test_resume_refuses_an_edited_data_file(tmp_path, halt_at):
    trace = tmp_path / "stays.csv"
    trace.write_text(STAYS)
    settings = trace_config(trace, checkpoint_seconds=0, out=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, on_row=halt_at(2))
    trace.write_text(STAYS.replace("1,0,", "1,0,9"))
    with pytest.raises(ConfigError, match=rf"trace {trace}: stays.csv has changed since the run"):
        wirelessfl.resume(tmp_path / "run")
    trace.write_text(STAYS)
    assert wirelessfl.resume(tmp_path / "run").rows[-1]["round"] == 4


def test_files_of_a_folder_are_hashed_except_hidden_ones(tmp_path):
    """Names and contents count; times do not."""
    images = tmp_path / "images"
    (images / "data").mkdir(parents=True)
    (images / ".tokens").mkdir()
    for name in ("train.parquet", "data/test.parquet", ".tokens/cache", "data/.hidden"):
        (images / name).write_text(name)
    settings = Config.from_flags("fedavg", dataset=str(images))
    hashes = named_hashes(settings)[f"dataset {images}"]
    assert hashes.keys() == {"train.parquet", "data/test.parquet"}
    before = kept_folder(settings, tmp_path)
    os.utime(images / "train.parquet", (1, 1))
    (images / ".tokens" / "cache").write_text("another")
    assert kept_folder(settings, tmp_path) == before
    (images / "train.parquet").write_text("train.parquez")
    assert kept_folder(settings, tmp_path) != before


def test_images_of_class_folders_are_hashed_by_class(tmp_path):
    """One changed or renamed image changes the hash of its class alone."""
    for name in ("train/cat/1.png", "train/cat/.2.png", "train/dog/1.png", "test/cat/a/1.png"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    settings = Config.from_flags("fedavg", dataset=str(tmp_path))

    def hashes():
        return named_hashes(settings)[f"dataset {tmp_path}"]

    before = hashes()
    assert before.keys() == {"train/cat/", "train/dog/", "test/cat/"}
    for change in (
        lambda: (tmp_path / "train/dog/1.png").write_text("train/dog/2.png"),
        lambda: (tmp_path / "test/cat/a/1.png").rename(tmp_path / "test/cat/a/2.png"),
    ):
        change()
        now = hashes()
        changed = {name for name in before if before[name] != now[name]}
        assert len(changed) == 1
        before = now


def test_parts_of_large_files_are_hashed(tmp_path, monkeypatch):
    """Size, both ends and evenly spaced parts count."""
    monkeypatch.setattr(named_files, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(named_files, "PART_BYTES", 10)
    file = tmp_path / "stays.csv"
    content = np.zeros(100_000, np.uint8)

    def hash_of():
        file.write_bytes(content.tobytes())
        return named_hashes(trace_config(file))[f"trace {file}"]["stays.csv"]

    found = [hash_of()]
    middle = 30 * (len(content) - named_files.PART_BYTES) // (named_files.PARTS - 1)
    for place in (0, middle, -1):
        content[place] = 1
        found.append(hash_of())
    content = content[:-1]
    found.append(hash_of())
    assert len({*found}) == len(found)


def test_the_command_says_which_runs_were_read(own, monkeypatch, capsys):
    monkeypatch.chdir(own)
    words = ["sweep", "fedavg", "--model", "own_model:make", "--rounds", "1", "--clients", "2"]
    words += ["--local-steps", "1", "--threads", "1", "--out", "runs", "--json"]

    def notes(shown):  # without the lines of finished runs
        return [line for line in shown.splitlines() if not line.endswith(" s simulated")]

    said = []
    for seeds in ("1,2", "1,2,3"):
        assert main([*words, "--seed", seeds]) == 0
        shown = capsys.readouterr()
        json.loads(shown.out)
        said.append(notes(shown.err))
    edit(own / "own_model.py", "nn.ReLU", "nn.Tanh")
    assert main([*words, "--seed", "1"]) == 0
    said.append(notes(capsys.readouterr().err))
    line = "reading 2 finished runs from runs (seed 1; seed 2), executing 1"
    assert said == [[], [line], []]


def test_a_kept_run_of_old_code_is_not_resumed(own):
    first = kept_run(config(), own / "runs")
    edit(own / "own_model.py", "nn.ReLU", "nn.Tanh")
    assert kept_run(config(), own / "runs").directory != first.directory
