"""A run's folder records versions, commit, date and device."""

import json
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

import wirelessfl
from wirelessfl.runs.folder.about import NUMERICS, commit
from wirelessfl.runs.folder.new_folder import create


def read(folder):
    told = json.loads((folder / "about.json").read_text())
    del told["checksum"]
    return told


def halted(config, toy):
    """The folder of a run that was interrupted after its second round."""

    def halt(row):
        if row["round"] == 2:
            raise KeyboardInterrupt

    settings = config(rounds=4, checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt)
    return settings.run.out


def test_a_folder_records_versions_commit_date_and_device(config, toy):
    """The file is written before the first row and does not change afterwards."""
    settings, seen = config(), []
    begun = datetime.now(UTC).replace(microsecond=0)
    result = wirelessfl.run(
        settings, data=toy, on_row=lambda row: seen.append(read(settings.run.out))
    )
    told = read(result.directory)
    assert all(own == told for own in seen)
    date = datetime.fromisoformat(told.pop("date"))
    assert begun <= date <= datetime.now(UTC)
    assert date.utcoffset() == timedelta(0)
    assert told.pop("device_name")
    assert told.pop("hashes")["the network"]
    assert told == {
        "wirelessfl": wirelessfl.__version__,
        **commit(Path(wirelessfl.__file__).parent),
        "device": "cpu" if not torch.cuda.is_available() else result.config.run.device,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "numerics": NUMERICS,
        "data": {"toy": "not checksummed"},
    }


@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [("hist", {}), ("fedast", {}), ("fedavg", {"sessions": 2, "split": "iid"})],
)
def test_every_row_has_the_version_of_the_results(config, toy, algorithm, flags):
    rows = wirelessfl.run(config(algorithm, **flags), data=toy).rows
    assert rows
    assert {row["numerics"] for row in rows} == {NUMERICS}


def test_resuming_adds_an_entry_to_about_json(config, toy, same):
    """Existing entries are kept."""
    reference = wirelessfl.run(config(rounds=4), data=toy)
    out = halted(config, toy)
    first = {**read(out), "wirelessfl": "0.0.7", "numerics": 0}
    (out / "about.json").write_text(json.dumps(first))
    same(wirelessfl.resume(out, data=toy), reference)
    told = read(out)
    (entry,) = told.pop("resumed")
    assert told == first
    assert entry.keys() == first.keys() - {"data", "hashes"}
    assert (entry["wirelessfl"], entry["numerics"]) == (wirelessfl.__version__, NUMERICS)
    assert first["date"] <= entry["date"]
    assert not list(out.glob("*.part"))


def test_damage_and_unknown_entries_of_about_json_do_not_stay(config, toy):
    """A changed entry is noticed; an entry of another version is not carried on."""
    out = halted(config, toy)
    file = out / "about.json"
    whole = file.read_text()
    file.write_text(whole.replace('"device": "cpu"', '"device": "cpv"'))
    with pytest.raises(wirelessfl.ConfigError, match=r"about\.json is damaged: it differs"):
        wirelessfl.resume(out, data=toy)
    (note,) = wirelessfl.load(out).notes
    assert "about.json is damaged: it differs" in note
    file.write_text(json.dumps(read(out) | {"evil": "text"}))
    wirelessfl.resume(out, data=toy)
    assert "evil" not in file.read_text()


@pytest.mark.parametrize(
    "junk", ["", "{", "[]", "3", '{"resumed": 4}', '{"notes": [4]}', "[" * 100_000, "\udcff"]
)
def test_a_damaged_about_json_is_named(tmp_path, config, junk):
    directory = create(tmp_path / "run", config())
    file = directory.path / "about.json"
    file.write_text(junk, errors="surrogateescape")
    with pytest.raises(wirelessfl.ConfigError, match=r"about\.json is damaged: .*Restore it, or"):
        directory.note(resumed={})
    assert file.read_bytes() == junk.encode(errors="surrogateescape")


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_the_commit_is_that_of_the_package(tmp_path, monkeypatch):
    """Commit and dirty flag are recorded only if a work tree tracks the package."""

    def git(*words):
        who = ["-c", "user.name=x", "-c", "user.email=x@y.z", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def told():
        commit.cache_clear()
        return tuple(commit(package).values())

    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    package = tmp_path / "wirelessfl"
    for name in ("channels", "solvers", "wirelessfl"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    assert told() == (None, None)
    git("init", "--quiet")
    (tmp_path / ".gitignore").write_text("wirelessfl/\n")
    git("add", ".gitignore")
    git("commit", "--quiet", "-m", "a project with the package in its environment")
    assert told() == (None, None)
    git("add", "--force", "channels", "solvers", "wirelessfl")
    git("commit", "--quiet", "-m", "the packages")
    head = git("rev-parse", "HEAD")
    assert told() == (head, False)
    (tmp_path / "notes.txt").write_text("not part of the packages")
    assert told() == (head, False)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as in a hook
    (tmp_path / "channels" / "__init__.py").write_text("changed = True\n")
    assert told() == (head, True)
    monkeypatch.setenv("PATH", "")
    assert told() == (None, None)
    commit.cache_clear()
