"""The page on payloads: its numbers, its study, and its own compression."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wirelessfl
from channels import Stream
from tests.docs.pages import GUIDES, blocks
from wirelessfl.models.submodels import ParamSpec

PAGE = GUIDES / "payloads.md"
FILES = {file: code for _, file, code in blocks(PAGE) if file}


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The module of the page's own compression, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_compression", raising=False)
    for file, code in FILES.items():
        Path(file).write_text(code)
    return SimpleNamespace(**runpy.run_path("my_compression.py"))


def test_the_own_compression_is_unbiased(page):
    """Means of 4000 draws within four standard errors, |x| sqrt((1 - p) / p / draws)."""
    part, draws = 0.25, 4000
    x, spec = torch.linspace(-1, 1, 40), ParamSpec({"x": (40,)})
    streams = [Stream(1).child(number) for number in range(draws)]
    method = page.RandomPart(part)
    sent = method.compress(x.repeat(draws, 1), np.full(draws, 40), spec, streams)
    error = x.abs() * ((1 - part) / part / draws) ** 0.5
    assert ((sent.mean(0) - x).abs() <= 4 * error + 1e-6).all()
    assert method.bits(np.array([0, 40, 41]), spec).tolist() == [0, 352, 384]


def test_the_own_compression_has_flags_of_both_directions(page):
    own = {"uplink_compression": "my_compression:RandomPart", "uplink_part": 0.5}
    both = own | {"downlink_compression": "my_compression:RandomPart", "downlink_part": 0.75}
    config = wirelessfl.Config.from_flags("fedavg", **both)
    assert (config.uplink_compression.part, config.downlink_compression.part) == (0.5, 0.75)


def test_the_study_runs(page, capsys):
    """Fewer bits take less time, energy and traffic."""
    code = FILES["payload_study.py"]
    Path("payload_study.py").write_text(code.replace("rounds=20", "rounds=2"))
    runpy.run_path("payload_study.py")
    lines = re.findall(
        r"accuracy \S+, ([\d.]+) s, ([\d.]+) J and (\S+) MiB", capsys.readouterr().out
    )
    seconds, joules, mib = (np.array(column, float) for column in zip(*lines, strict=True))
    assert len(mib) == 5
    for costs in (seconds, joules, mib):
        assert costs[0] > max(costs[1:])
        assert costs[2] == costs[3] == min(costs)


def test_tracking_terms_are_named(tmp_path):
    flags = {"dataset": "digits", "rounds": 1, "clients": 4, "local_steps": 1}
    config = wirelessfl.Config.from_flags("scaffold", uplink_compression="sign", **flags)
    with pytest.warns(wirelessfl.Note, match="algorithm scaffold sends tracking with 32 bits"):
        wirelessfl.run(config)


def test_more_pilots_cost_time_and_lower_the_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = (code for _, _, code in blocks(PAGE) if "pilot_symbols=symbols" in code)
    exec(compile(code, "pilots", "exec"), {})
    rows = np.array([line.split() for line in capsys.readouterr().out.splitlines()], float)
    symbols, left, seconds, errors = rows.T
    np.testing.assert_allclose(left, 1 / (1 + symbols))
    assert (np.diff(seconds) > 0).all()
    assert (np.diff(errors) < 0).all()
