"""The commands that reproduce figures: what is trained, and errors for wrong arguments."""

import pytest

from experiments import sealed
from experiments.__main__ import main as every_paper
from experiments.evidence import Evidence
from experiments.hist.__main__ import PAPER
from experiments.ra_fed.__main__ import PAPER as RA_FED
from experiments.runs import Planned, Store
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config


def test_finished_and_duplicate_runs_are_executed_once(tmp_path):
    """Equal runs are executed once, and a finished run is not repeated."""
    config = Config.from_flags("hist", clients=8, rounds=1, local_steps=1, threads=1)
    store = Store(tmp_path / "rows", tmp_path / "runs")
    store.make([Planned("a", config, 2), Planned("b", config, 1)])
    (file,) = store.rows.iterdir()
    before = file.stat().st_mtime_ns
    store.make([Planned("c", config)])
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "{}/file"], "out is {}/file: {}/file is not a folder"),
        (["--rows", "{}/none"], "rows is {}/none: there is no such folder"),
        (["--rows", "{}/file/rows", "--make"], "rows is {}/file/rows: {}/file is not a folder"),
    ],
)
def test_folders_are_checked_first(words, message, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    words = [word.replace("{}", str(tmp_path)) for word in words]
    assert PAPER.main(["fig3", "--out", str(tmp_path / "out"), *words]) == 2
    assert message.replace("{}", str(tmp_path)) in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_created_is_named_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/out: Not a directory\. Choose another"):
        PAPER.reproduce(["fig3"], "smoke", tmp_path / "file" / "out", make=True)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_invalid_arguments_give_one_line(tmp_path, capsys):
    """An invalid argument gives a one-line error and exit status 2."""
    assert (
        PAPER.main(["fig3", "--scale", "smoke", "--out", str(tmp_path), "--make", "--jobs", "0"])
        == 2
    )
    assert "jobs is 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("main", "words", "message"),
    [
        (PAPER.main, ["fig3", "--scale", "smal"], "unknown scale 'smal'. Do you mean 'small'?"),
        (PAPER.main, ["fig3", "--row", "x", "--jobz", "3"], "unknown flag '--jobz'. Do you mean"),
        (every_paper, ["claim"], "unknown command 'claim'. Do you mean 'claims'? Choose list,"),
        (every_paper, ["claims", "hits"], "unknown paper 'hits'. Do you mean 'hist'? Choose hist,"),
    ],
)
def test_an_unknown_name_gives_one_line_with_the_nearest(main, words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert shown.count("\n") == 1
    assert message in shown


def test_joined_studies_have_the_runs_of_each(tmp_path, monkeypatch):
    """A case of two studies is there once, and each study reads its own runs."""
    names = ("coverage", "weights")
    study = RA_FED.study(names, "smoke")
    parts = [RA_FED.study(name, "smoke") for name in names]
    keys = [case.key for part in parts for case in part.cases]
    assert [case.key for case in study.cases] == list(dict.fromkeys(keys))
    assert len(keys) > len(study.cases)
    read = []
    monkeypatch.setattr(sealed, "table", lambda rows, name: read.append(name))
    store = RA_FED.store("smoke", tmp_path)
    found = Evidence(RA_FED, store, "smoke").study(names)
    assert read == [*names]
    assert found.study.cases == study.cases
    assert found.where() == study.results(store).where() == []
    assert [one.name for one in RA_FED.studies("smoke")].count("weights") == 1
    assert not any("+" in one.name for one in RA_FED.studies("smoke"))
