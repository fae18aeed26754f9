"""Settings: equal objects from TOML, flags and Python; one clear error per mistake."""

import copy
import dataclasses
import importlib
import pickle
import re
import tomllib
from pathlib import Path

import pytest

import wirelessfl
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.algorithms import Algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.registry import classes_in
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS, Regime
from wirelessfl.config.kinds import chosen_classes, flag_homes
from wirelessfl.config.tables import named_tables, tables_from_flags
from wirelessfl.runs.build.building import BUILDERS

PROMISED = (
    "dataset data_dir model cells clients local_steps edge_rounds rounds lr batch_size split alpha "
    "mask_sizes size_cap dropout weighting eval_every target seed device executor chunk out"
).split()


def test_common_flags_exist():
    tables = {"algorithm": "hist", "split": "dirichlet", "model": "fcnn"}
    homes = flag_homes(chosen_classes(named_tables(tables))) | {kind: kind for kind in KINDS}
    assert not [flag for flag in PROMISED if flag not in homes]


def test_a_name_alone_says_how_settings_are_given():
    with pytest.raises(ConfigError, match=r"Config got 'fedavg' without .*Config.from_flags"):
        Config("fedavg")


def test_a_copy_with_other_tables_is_resolved_again():
    """A copy with new tables derives its choices, tasks and defaults from them."""
    base = Config.from_flags("fedast", task=["digits,requests=4", "mnist"], target=0.5)
    copy = base.changed(requests=7)
    assert [task.schedule.active for task in copy.tasks.values()] == [4, 7]
    assert copy.schedule.active == copy.schedule.requests == 7
    assert base.changed() == base
    assert base.changed(rounds=3).tasks["mnist"].training.rounds == 3
    star = Config.from_flags("fedavg")
    assert star.changed(algorithm="hist").network.cells == 4
    with pytest.raises(ConfigError, match="lr is -1"):
        star.changed(lr=-1)


def test_a_copy_drops_what_it_does_not_use():
    """Settings of the previous choices; those that are None are as if not given."""
    adaptive = Config.from_flags("hfedavg", local="fadamgc", beta1=0.5, lr=0.3, cells=2, rounds=9)
    assert adaptive.changed(local=None) == Config.from_flags("hfedavg", lr=0.3, cells=2, rounds=9)
    star = adaptive.changed(algorithm="fedavg", rounds=None)
    assert star == Config.from_flags("fedavg")
    with pytest.raises(ConfigError, match="order='ready' is a setting of uplink"):
        star.changed(uplink="ofdma", order="ready")
    assert star.changed(uplink="ofdma", order="ready", on_idle="drop").uplink.name == "ofdma"
    with pytest.raises(ConfigError, match='on_idle is \'drp\': give "refuse" or "drop"'):
        star.changed(uplink="ofdma", order="ready", on_idle="drp")
    with pytest.raises(ConfigError, match=r"given is 'model', but .* to wirelessfl\.run"):
        star.changed(given="model")


def test_a_configuration_of_tables_has_tasks_and_can_be_copied(tmp_path):
    plain = Config(algorithm="hist", network={"clients": 8})
    assert plain == Config.from_flags("hist", clients=8)
    moved = plain.with_run({"out": tmp_path})
    assert moved == Config.from_flags("hist", clients=8, out=tmp_path)
    tables = [{"dataset": "digits"}, {"dataset": "mnist", "local_steps": 3}]
    tasks = Config(algorithm="fedast", task=tables)
    assert tasks.tasks == Config.from_flags("fedast", task=tables).tasks
    assert tasks.with_run({"workers": 1}).tasks["mnist"].run.workers == 1


def test_toml_and_flags_and_tables_give_the_same_object(tmp_path):
    flags = Config.from_flags("hist", cells=3, lr=0.05, uplink="ofdma", cpu_hz=(1e9, 2e9))
    tables = Config.of(
        {
            "algorithm": {"name": "hist", "lr": 0.05},
            "uplink": "ofdma",
            "network": {"cells": 3, "cpu_hz": [1e9, 2e9]},
        }
    )
    file = tmp_path / "run.toml"
    file.write_text(flags.to_toml())
    assert flags == tables == Config.from_toml(file)
    words = {"cells": "3", "lr": "0.05", "uplink": "ofdma", "cpu_hz": ("1e9", "2e9")}
    assert Config.from_flags("hist", **words) == flags


def test_a_table_without_a_name_belongs_to_the_default_choice():
    tables = {"uplink": {}, "split": {"shards": 3}, "model": {"dropout": 0.2}}
    config = Config.of({"algorithm": "hist", **tables})
    assert config == Config.from_flags("hist", shards=3, dropout=0.2)
    assert (config.named("uplink"), config.named("split"), config.named("model")) == (
        "tdma",
        "noniid",
        "fcnn",
    )
    with pytest.raises(ConfigError, match=r"'rate_mbps' of uplink 'tdma'.* setting of uplink fix"):
        Config.of({"algorithm": "hist", "uplink": {"rate_mbps": 3}})


def test_defaults_depend_on_the_topology():
    assert Config.from_flags("hist").network.cells == 4
    assert Config.from_flags("hist").training.edge_rounds == 5
    star = Config.from_flags("fedavg")
    assert (star.network.cells, star.training.edge_rounds) == (1, 1)
    assert Config.from_flags("hist", clients=3).network.cells == 3


@pytest.mark.parametrize(
    ("algorithm", "flags", "message"),
    [
        ("hist", {"target": 80}, "evaluation.target is 80"),
        ("hist", {"cels": 4}, "unknown setting 'cels' .*Do you mean 'cells'"),
        ("hist", {"cells": 9, "clients": 5}, "every cell needs a client"),
        ("hist", {"cpu_hz": (3e9, 1e9)}, "LOW <= HIGH"),
    ],
)
def test_each_mistake_has_its_own_message(algorithm, flags, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Config.from_flags(algorithm, **flags)
    assert "\n" not in str(caught.value)


def test_unknown_keys_and_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no algorithm"):
        Config.of({})
    with pytest.raises(
        ConfigError, match=r"none.toml: No such file.*\. Give the path of a TOML file\.$"
    ):
        Config.from_toml(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[algorithm\n")
    with pytest.raises(ConfigError, match="is not TOML"):
        Config.from_toml(broken)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"algorithm": 3}, "algorithm is 3: give a name"),
        ({"algorithm": []}, r"algorithm is \[\]: give a name"),
        ({"algorithm": {"name": 3}}, "algorithm is {'name': 3}: give a name"),
        ({"algorithm": "hist", "uplink": 3}, "uplink is 3: give a name"),
        ({"algorithm": "hist", "uplink": {"name": 3}}, "uplink is {'name': 3}: give a name"),
        ({"algorithm": "hist", "uplink": []}, r"uplink is \[\]: give a name"),
        ({"algorithm": "os:path"}, "algorithm 'os:path' is <module"),
        ({"algorithm": ":"}, "algorithm ':' cannot be imported"),
        (
            {"algorithm": "wirelessfl.algorithms:Algorithm"},
            "lacks merge, send, which .*: define them.$",
        ),
        ({"algorithm": "hist", "network": 3}, "network is 3"),
        ({"algorithm": {"name": "hist", "size_cap": "1e400"}}, "size_cap is inf: give a finite"),
    ],
)
def test_wrong_types_in_tables_are_explained(tables, message):
    with pytest.raises(ConfigError, match=message):
        Config.of(tables)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[algorithm]\nname = "fedavg"\n', encoding="utf-8-sig")
    assert file.read_bytes().startswith(b"\xef\xbb\xbf")
    assert Config.from_toml(file) == Config.from_flags("fedavg")


OWN = '''
from dataclasses import dataclass
from typing import Annotated
from pydantic import Field
from wirelessfl.extend import FedAvg, Payload, Tdma

@dataclass(frozen=True)
class EachUpdate(FedAvg):
    """Needs each client's update, and has a setting with the name of another."""
    name = "each-update"
    overrides = ("momentum",)
    payloads = (Payload("update", each=True),)
    clients: Annotated[int, Field(ge=1, description="of a different kind")] = 2
    momentum: float | None = None
    overrides = ("momentum",)

@dataclass(frozen=True)
class OnlySums(Tdma):
    """Delivers only sums."""
    name = "only-sums"
    gives = "sum"
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's module with an algorithm and an uplink."""
    (tmp_path / "own_parts.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("own_parts")


def test_conflicts_name_both_settings(own):
    each, sums = "own_parts:EachUpdate", "own_parts:OnlySums"
    with pytest.raises(ConfigError, match=rf'"{each}" needs each client.s update.*"{sums}"'):
        Config.of({"algorithm": each, "uplink": sums})
    Config.of({"algorithm": each, "uplink": "tdma"})
    Config.of({"algorithm": "fedavg", "uplink": sums})


def test_flags_with_equal_names_are_prefixed_by_their_choice(own):
    homes = flag_homes({"algorithm": own.EachUpdate, "uplink": UPLINKS.find("tdma")})
    assert homes["clients"] == ("network", "clients")
    assert homes["each_update_clients"] == ("algorithm", "clients")


def test_flags_override_a_file():
    tables = {"algorithm": "hist", "network": {"cells": 2, "clients": 10}}
    assert Config.of(tables_from_flags(tables, {"cells": 5})[0]).network.cells == 5
    assert Config.of(tables_from_flags(tables, {"cells": 5})[0]).network.clients == 10


def test_optional_settings_are_stored_and_read_back(own, tmp_path):
    config = Config.of({"algorithm": "own_parts:EachUpdate"})
    (tmp_path / "run.toml").write_text(config.to_toml())
    assert Config.from_toml(tmp_path / "run.toml", trust=True) == config
    set_one = Config.of({"algorithm": {"name": "own_parts:EachUpdate", "momentum": 0.5}})
    assert set_one.algorithm.momentum == 0.5


def test_an_algorithm_without_a_name_is_named_after_its_file(tmp_path, monkeypatch):
    """Such a class does not replace its parent; two classes with the same name are an error."""
    monkeypatch.syspath_prepend(tmp_path)
    code = "from wirelessfl.algorithms.fedavg import FedAvg\nclass Own(FedAvg):\n    pass\n"
    for folder in ("fl_folder", "fl_twice"):
        package = tmp_path / folder
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "my_rule.py").write_text(code)
    (package / "second.py").write_text(code.replace("pass", "name = 'my-rule'"))
    assert list(classes_in("fl_folder", Algorithm)) == ["my-rule"]
    with pytest.raises(ConfigError, match=r"is called 'my-rule', and so is fl_twice\.my_rule"):
        classes_in("fl_twice", Algorithm)


def test_an_empty_table_equals_no_table():
    tables = {"algorithm": "fedavg", "sessions": {"sessions": 2}, "presence": {"overlap": 0.1}}
    assert Config.of({"algorithm": "fedavg", "delays": {}}).delays is None
    without = Config.merged(tables, {"schedule": "buffered"})  # drops all settings of presence
    assert without.presence is None
    assert Config.of(tomllib.loads(without.to_toml())) == without


def test_a_flag_for_another_algorithm_drops_settings_of_the_old_one():
    stored = tomllib.loads(Config.from_flags("hist", cells=2, edge_rounds=3, lr=0.5).to_toml())
    star = Config.merged(stored, {"algorithm": "fedavg", "seed": 4})
    assert star.algorithm.name == "fedavg"
    assert star.network.cells == 1
    assert Config.of(tomllib.loads(star.to_toml())) == star
    assert Config.merged(stored, {"algorithm": "hist"}).algorithm.lr == 0.5
    with pytest.raises(ConfigError, match='cells=3 conflicts with algorithm "fedavg"'):
        Config.merged(stored, {"algorithm": "fedavg", "cells": 3})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"algorithm": "???"}, "algorithm is '???', a value that is still missing"),
        ({"algorithm": "hist", "uplink": {"name": "???"}}, "uplink is '???', a value"),
        ({"algorithm": "hist", "run": {"out": "???"}}, "out is '???', a value"),  # no path either
        ({"algorithm": "fedast", "task": [{"name": "a", "lr": "???"}]}, "lr is '???', a value"),
        ({"algorithm": "hist", "network": {"clients": "${x.y}"}}, "clients is '${x.y}', a ref"),
    ],
)
def test_values_that_omegaconf_leaves_open_are_refused(tables, message):
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        Config.of(tables)


def test_a_table_without_a_value_is_no_table():
    """As of a key without entries in YAML."""
    empty = {"network": None, "uplink": None, "run": None, "task": None}
    assert Config.of({"algorithm": "hist", **empty}) == Config.of({"algorithm": "hist"})
    for name in ("netwrok", "seed"):
        with pytest.raises(ConfigError, match=f"unknown setting '{name}' outside a table"):
            Config.of({"algorithm": "hist", name: None})


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
    assert found == ["designs/spaces.py: if changed.regime != config.regime:"]


def test_a_change_in_place_is_answered_with_how_to_make_a_copy():
    """Of a setting, a section or a field; the named way works."""
    config = Config.from_flags("fedavg", clients=4, rounds=3)
    way = r"config\.changed\(rounds=value\)"
    with pytest.raises(ConfigError, match=way):
        config.training.rounds = 5
    with pytest.raises(ConfigError, match=way):
        config.rounds = 5
    with pytest.raises(ConfigError, match=way):
        dataclasses.replace(config, training=None)
    with pytest.raises(AttributeError, match=way):
        config.replace(rounds=5)
    assert not hasattr(config, "rounds")
    changed = config.changed(rounds=5)
    assert (changed.training.rounds, changed.network.clients, config.training.rounds) == (5, 4, 3)
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
