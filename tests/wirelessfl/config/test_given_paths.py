"""Names, paths and whole numbers as users give them: on the command line, in TOML, in Python."""

import os
from pathlib import Path

import numpy as np
import pytest

import channels
import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import absolute, expanded
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.results import load_all

UNDECODABLE = os.fsdecode(b"caf\xe9")
LONG = "x" * 300


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home folder, apart from the working directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def test_a_tilde_is_the_home_folder(home, tmp_path):
    """In flags, files and Python; of output, data, code, figures and stored runs."""
    words = "--dataset digits --clients 2 --rounds 1 --local-steps 1 --threads 1 --quiet".split()
    assert main(["run", "fedavg", *words, "--client-log", "--out", "~/run"]) == 0
    assert main(["export", "~/run", "-o", "~/run.csv"]) == 0
    assert len(load_all("~/r*")) == 1
    assert len(wirelessfl.read_client_log("~/run")) == 2
    assert wirelessfl.resume("~/run").directory == home / "run"
    assert {"run", "run.csv"} <= {path.name for path in home.iterdir()}
    assert not [*Path.cwd().iterdir()]
    (home / "p.csv").write_text("kind,x_m,y_m\nbase_station,0,0\nclient,9,9\n")
    assert channels.FileLayout("~/p.csv").place(1, 1, channels.Stream(0)).cell_of.size == 1
    (home / "a.toml").write_text(
        '[algorithm]\nname = "fedavg"\n[run]\nout = "~/b"\n[data]\ndata_dir = "~/c"\n'
    )
    config = Config.from_toml("~/a.toml")
    assert (config.run.out, config.data.data_dir) == (home / "b", home / "c")
    assert absolute("~/own.py:Own") == f"{home}/own.py:Own"
    assert expanded("~") == home


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("out", {"out": UNDECODABLE}),
        ("data_dir", {"data_dir": Path(UNDECODABLE)}),
        ("dataset", {"dataset": f"./{UNDECODABLE}"}),
        ("model", {"model": f"{UNDECODABLE}.py:net"}),
    ],
)
def test_bytes_that_are_not_utf8_are_refused(name, flags):
    """A stored configuration could not hold them."""
    with pytest.raises(wirelessfl.ConfigError, match=rf"^{name} is '.*caf\\udce9.*not UTF-8"):
        Config.from_flags("fedavg", **flags)


@pytest.mark.parametrize("flags", [{"dataset": LONG}, {"model": LONG}, {"split": LONG}])
def test_names_that_no_file_can_have_are_unknown(flags):
    with pytest.raises(wirelessfl.ConfigError, match=r"is unknown\. Choose"):
        Config.from_flags("fedavg", **flags)
    with pytest.raises(wirelessfl.ConfigError, match=f"{LONG} does not exist"):
        load_all(LONG)


@pytest.mark.parametrize("name", ["rounds", "seed", "chunk", "batch_size"])
@pytest.mark.parametrize("value", [10**400, str(10**400), -(10**400), 1e308])
def test_whole_numbers_that_toml_cannot_hold_are_refused(name, value):
    with pytest.raises(wirelessfl.ConfigError, match=rf"{name} is beyond 2\*\*63 - 1"):
        Config.from_flags("fedavg", **{name: value})
    assert Config.from_flags("fedavg", seed=2**63 - 1).run.seed == 2**63 - 1


def test_values_of_a_sweep(capsys):
    """Ranges and arrays are lists; spans and empty values are refused with the remedy."""
    values = {"seed": range(2), "lr": np.array([0.1, 0.2])}
    found = [(c.run.seed, c.algorithm.lr) for c in wirelessfl.combinations("fedavg", values)]
    assert found == [(0, 0.1), (0, 0.2), (1, 0.1), (1, 0.2)]
    with pytest.raises(ConfigError, match=r"seed is \[1, 2\]: .* or wirelessfl.combinations"):
        Config.from_flags("fedavg", seed=[1, 2])
    for words, message in (
        (["sweep", "fedavg", "--seed", "1-3"], "'1-3' is not a list of values: write 1,2,3."),
        (["sweep", "fedavg", "--seed", "1,,2"], "'1,,2' has an empty value: remove a comma."),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert message in capsys.readouterr().err
    assert main(["run", "fedavg", "--cpu-hz", "2"]) == 2
    assert capsys.readouterr().err.startswith("ConfigError: network.cpu_hz is '2': give two numb")


def test_resume_takes_a_result(home):
    settings = {"dataset": "digits", "clients": 2, "rounds": 1, "local_steps": 1, "out": "run"}
    result = wirelessfl.run(Config.from_flags("fedavg", **settings))
    assert wirelessfl.resume(result).rows == result.rows
