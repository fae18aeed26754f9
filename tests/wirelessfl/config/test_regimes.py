"""Regimes: tables have an entry for each, and their names are tested in one place only."""

import re
from pathlib import Path

import wirelessfl
from wirelessfl.config import Config
from wirelessfl.config.choices import Regime
from wirelessfl.runs.build.building import BUILDERS


def test_each_regime_has_a_builder():
    assert set(BUILDERS) == set(Regime)


def test_schedule_algorithm_and_sessions_decide():
    found = {
        name: Config.from_flags(algorithm, **flags).regime
        for name, algorithm, flags in (
            ("rounds", "hist", {}),
            ("sessions", "fedavg", {"sessions": 2}),
            ("tasks", "scaffold", {"schedule": "buffered"}),
            ("cells", "hist", {"schedule": "buffered"}),
        )
    }
    assert found == {regime.value: regime for regime in Regime}


def test_no_code_outside_the_configuration_tests_the_name_of_a_regime():
    """It asks for facts of the regime, which has attributes for them."""
    root = Path(wirelessfl.__file__).parent
    tested = re.compile(r"\bregime (==|!=|in|not in) |match [\w.]*\bregime:|isinstance\(regime")
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        if path.parent != root / "config" and root / "config" not in path.parents
        for line in path.read_text().splitlines()
        if tested.search(line)
    ]
    assert found == ["designs/spaces.py: if found.regime != config.regime:"]
