"""The page on AirComp studies: its examples run, and print the errors that it states."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.docs.pages import GUIDES, blocks

PAGE = GUIDES / "aircomp.md"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the page, in the current folder."""
    monkeypatch.chdir(tmp_path)
    found = {file: code for _, file, code in blocks(PAGE) if file}
    for file, code in found.items():
        Path(file).write_text(code)
    return found


def test_the_errors_of_the_table_are_those_of_the_study(files, capsys):
    """They fall by 20 dB for 20 dB of SNR, and agree with the formula."""
    runpy.run_path("aircomp_snr.py")
    printed = {}
    for line in capsys.readouterr().out.splitlines():
        convention, snr_db, _, realised, predicted = line.split()
        printed[convention, int(snr_db)] = float(realised), float(predicted)
    assert len(printed) == 10
    stated = {
        int(snr_db): [float(value) for value in values.split(" | ")]
        for snr_db, values in re.findall(r"^\| (-?\d+) dB \| (.*) \|$", PAGE.read_text(), re.M)
    }
    assert [*stated] == [-20, 0, 20]
    for snr_db, values in stated.items():
        published, physical = printed["published", snr_db], printed["physical", snr_db]
        assert np.allclose(values, [*published, *physical], rtol=1e-9)
        assert np.allclose(values[::2], values[1::2], rtol=0.03)


def test_imperfect_channels_leave_an_error(files, capsys):
    """Phases, estimates, both, and delays; each realised error is near its expectation."""
    runpy.run_path("aircomp_imperfect.py")
    errors = np.array(re.findall(r": (\S+) (\S+)$", capsys.readouterr().out, re.M), dtype=float)
    assert errors.shape == (6, 2)
    assert np.allclose(errors[:, 0], errors[:, 1], rtol=0.2)
    exact, small, large, estimates, both, late = errors[:, 1]
    assert exact < small < large < both
    assert exact < late
    assert exact < estimates < both


@pytest.mark.thorough
def test_the_sweep_of_conventions_trains(files, capsys):
    """Errors are those of the SNR; the reference has none."""
    short = files["aircomp_sweep.py"].replace('"rounds": 10', '"rounds": 1')
    assert short != files["aircomp_sweep.py"]
    Path("aircomp_sweep.py").write_text(short.replace('"local_steps": 10', '"local_steps": 1'))
    runpy.run_path("aircomp_sweep.py", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    errors = [float(re.search(r"error (\S+),", line)[1]) for line in lines]
    assert len(errors) == 7
    assert errors[0] == 0
    for low, high in zip(errors[1::2], errors[2::2], strict=True):
        assert low > high > 0


def test_votes_are_lost_less_often_with_power_and_antennas(files, capsys):
    runpy.run_path("aircomp_votes.py")
    chances = np.array(
        [re.findall(r"(\S+) % \(", line) for line in capsys.readouterr().out.splitlines()], float
    )
    assert chances.shape == (4, 2)
    assert (np.diff(chances, axis=0) < 0).all()
    assert (chances[:, 1] < chances[:, 0]).all()
    assert chances[-1, 0] == pytest.approx(100 * (1 + 60) / (2 + 60 + 240), abs=0.1)
