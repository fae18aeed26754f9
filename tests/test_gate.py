"""The gate accepts equal results, reports differences, and covers every choice and setting."""

import itertools
import json
import math
import re
import shutil
from dataclasses import MISSING, dataclass, fields, replace
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.gate import given
from tests.gate.command import main
from tests.gate.comparing import first_difference
from tests.gate.configurations import CONFIGURATIONS, ROUNDED, How, one
from tests.gate.running import Outcome
from wirelessfl import Config
from wirelessfl.algorithms import algorithm_classes, find_algorithm, find_local
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.registry import Choice
from wirelessfl.config.choices import KINDS, OPTIONAL, PRESETS
from wirelessfl.config.sections import SECTIONS

CLASSES = {
    "algorithm": algorithm_classes,
    **{kind: known.classes for kind, known in KINDS.items()},
}
LEFT_OUT = {
    "workers auto": "the number depends on the machine",
    "chunk tune": "the number depends on a timing",
    "norm batch": "only for resnet18, which is large; a given model has batch norm",
    "tokenizer": "requires text data",
    "embedding_file": "requires text data",
    "max_length": "requires text data",
    "predicted": "is only shown",
    "precision tf32": "requires a GPU",
    "executor fused": "requires Numba",
    **dict.fromkeys(
        () if ROUNDED == "bf16" else ("precision", "precision bf16"),
        "requires a CPU with AVX512-BF16 or AMX",
    ),
    **dict.fromkeys(
        ("track", *(f"track {name}" for name in ("tensorboard", "trackio", "wandb", "mlflow"))),
        "requires the package of a tracker",
    ),
}
"""Settings and values of choices that no configuration uses, with the reason."""


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """The settings of all configurations and of each of their tasks."""
    found = []
    for configuration in CONFIGURATIONS.values():
        flags = configuration.flags_in(tmp_path_factory.mktemp("files"))
        config = Config.from_flags(configuration.algorithm, **flags)
        found += [config, *config.tasks.values()]
    return found


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store of three configurations."""
    folder = tmp_path_factory.mktemp("store")
    assert main(["store", "--into", str(folder), "--only", "given"]) == 0
    return folder


@pytest.fixture
def store(stored, tmp_path):
    """A copy of the store that a test may modify."""
    return shutil.copytree(stored, tmp_path / "store")


def check(folder, only="given"):
    return main(["check", "--into", str(folder), "--only", only])


def change(store, name, **parts):
    """Replace parts of a configuration's stored JSON file."""
    file = store / f"{name}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | parts))


def test_equal_results_pass(stored, capsys):
    assert check(stored) == 0
    assert capsys.readouterr().out.startswith("3 of 3 equal (stored at commit ")


def test_differences_of_one_ulp_in_a_row_and_in_a_parameter_are_found(store, capsys):
    """Differences of one ulp are found: two configurations fail, and the third passes."""
    rows = json.loads((store / "given-model.json").read_text())["rows"]
    loss = rows[2]["loss"]
    rows[2]["loss"] = math.nextafter(loss, 0)
    rows[2]["wall_seconds"] += 1.0
    change(store, "given-model", rows=rows)
    file = store / "given-batch-norm.safetensors"
    params = load_file(file)
    name, value = next((n, v) for n, v in params.items() if v.numel() > 3)
    flat = value.reshape(-1)
    moved = torch.nextafter(flat[3], torch.tensor(math.inf))
    gap = float(moved.double() - flat[3].double())
    flat[3] = moved
    save_file(params, file)
    assert check(store) == 1
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:2]) == [
        f"given-batch-norm: parameter {name}: 1 of {value.numel()} elements differ, "
        f"largest absolute difference {gap:.3g}",
        f"given-model: row 2, loss: {math.nextafter(loss, 0)!r} stored, {loss!r} now",
    ]
    assert lines[2].startswith("1 of 3 equal")


def test_incomparable_results_are_refused(store, tmp_path, capsys):
    """Results are not compared if none are stored, or if processor, packages or numerics differ."""
    only = "given-model"
    file = store / f"{only}.json"
    text = file.read_text()
    origin, rows = (json.loads(text)[part] for part in ("origin", "rows"))
    other = [row | {"numerics": 999} for row in rows]
    for parts, message in (
        ({"origin": origin | {"processor": "an abacus"}}, r"stored on an abacus, but this is \S"),
        (
            {"origin": origin | {"versions": origin["versions"] | {"numpy": "0.1"}}},
            r"stored with numpy 0\.1, but numpy is \d.* now: .* cannot be compared",
        ),
        ({"rows": other}, r"numerics 999 stored, \w+ now: store again$"),
    ):
        change(store, only, **parts)
        assert check(store, only) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert re.match(message, printed.err)
        assert printed.err.count("\n") == 1
        file.write_text(text)
    assert check(tmp_path / "empty") == 2
    assert "nothing is stored" in capsys.readouterr().err


def test_missing_and_changed_configurations_fail_the_check(store, capsys):
    (store / "given-model.json").unlink()
    change(store, "given-batch-norm", settings={})
    assert check(store) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "given-model: not stored: store it first" in lines
    assert "given-batch-norm: stored with other settings: store it again" in lines
    assert lines[-1].startswith("1 of 3 equal")


ROUNDS = itertools.count()


@dataclass(frozen=True)
class Forgetful(FedAvg):
    """An algorithm whose state is not in the checkpoint."""

    def merge(self, server, received):
        return {"params": server["params"] + 0.01 * next(ROUNDS)}


def test_failed_runs_and_wrong_resumes_are_reported(monkeypatch, tmp_path, capsys):
    def fail():
        raise ValueError("a user's error")

    few = {"given_data": given.points, "hidden": (5,)}
    algorithm = f"{__name__}:Forgetful"
    monkeypatch.setitem(CONFIGURATIONS, "bad-failing", one("fedavg", given_model=fail))
    monkeypatch.setitem(
        CONFIGURATIONS, "bad-resumed", one(algorithm, "resumed", checkpoint_seconds=0.0, **few)
    )
    assert main(["store", "--into", str(tmp_path), "--only", "bad"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bad-failing: failed: ValueError: a user's error"
    assert re.match(r"bad-resumed: row \d, \w+: \S+ uninterrupted, \S+ resumed", lines[1])
    assert lines[2].startswith("0 of 2 stored")
    assert check(tmp_path, "bad") == 2


def test_outcomes_are_compared_bitwise():
    """NaN equals NaN; 0.0 differs from -0.0 and from 0; wall-clock times are ignored."""
    rows = [{"loss": math.nan, "round": 0, "wall_seconds": 1.0}]
    outcome = Outcome(rows, {"w": torch.tensor([math.nan, 0.0, 1.0]), "b": torch.tensor(2.0)})

    def found(row=(), **params):
        return first_difference(outcome, Outcome([rows[0] | dict(row)], outcome.params | params))

    assert found({"wall_seconds": 2.0}, w=outcome.params["w"].clone()) is None
    assert found({"loss": 0.5}) == "row 0, loss: NaN stored, 0.5 now"
    assert found({"round": 0.0}) == "row 0, round: 0 stored, 0.0 now"
    assert found({"more": -0.0}) == "row 0, more: nothing stored, -0.0 now"
    assert found(w=torch.tensor([math.nan, -0.0, 1.5])) == (
        "parameter w: 2 of 3 elements differ, largest absolute difference 0.5"
    )
    assert "1 of 3 elements differ, largest absolute difference 0, and NaN" in found(
        w=torch.tensor([1.0, 0.0, 1.0])
    )
    assert found(b=torch.tensor([2.0])) == (
        "parameter b: torch.float32 [] stored, torch.float32 [1] now"
    )
    longer = replace(outcome, rows=[*rows, *rows])
    assert first_difference(outcome, longer) == "rows: 1 stored, 2 now"


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "place", "key"),
    [("price-star", 1, "priced.seconds"), ("sweep", 1, "2"), ("export", 3, "loss")],
)
def test_answers_of_commands_are_compared_by_entries(name, place, key, tmp_path, capsys):
    """A price in JSON, a line of a table, and a field of an exported row; no wall-clock time."""
    assert main(["store", "--into", str(tmp_path), "--only", name]) == 0
    assert check(tmp_path, name) == 0
    rows = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
    assert not any("wall" in entry for row in rows for entry in row)
    rows[place][key] = "other"
    change(tmp_path, name, rows=rows)
    capsys.readouterr()
    assert check(tmp_path, name) == 1
    assert capsys.readouterr().out.startswith(f'{name}: row {place}, {key}: "other" stored, ')
    if name == "export":
        assert load_file(tmp_path / "export.safetensors")


def test_every_registered_name_is_covered(configs):
    """All algorithms (inside cells too) and choices occur; names are valid file names.

    Data sets do not, because not every machine has their files.
    """
    for section, classes in CLASSES.items():
        if section == "dataset":
            continue
        tables = [table for config in configs if (table := config.tables.get(section))]
        usual = {"none"} if section in OPTIONAL else set()  # without a table
        assert sorted(set(classes()) - usual - {table["name"] for table in tables}) == [], section
    inside = {(own.named("algorithm"), own.tables["algorithm"].get("local")) for own in configs}
    locals_ = set(algorithm_classes()) - set(PRESETS)
    for outer, local in itertools.product(("hist", "hfedavg"), locals_):
        try:
            find_local(find_algorithm(outer), local)
        except ConfigError:
            continue
        assert (outer, local) in inside
    assert all(re.fullmatch(r"[a-z0-9_-]+", name) for name in CONFIGURATIONS)
    assert {own.how for own in CONFIGURATIONS.values()} == set(get_args(How))
    objects = [own.objects for own in CONFIGURATIONS.values()]
    assert set().union(*objects) == {"data", "model", "network", "split"}


def choices(hint):
    """The values allowed by a Literal type, or by the Literals inside a type."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return set().union(*(choices(part) for part in get_args(hint)))


def test_every_value_and_every_setting_is_covered(configs):
    """Every value of a choice occurs, and every setting has a value other than its default."""
    missing = set()
    for section, owner in SECTIONS.items():
        hints = get_type_hints(owner, include_extras=True)
        for key, default in vars(owner()).items():
            found = {getattr(getattr(config, section), key) for config in configs}
            missing |= {f"{key} {word}" for word in choices(hints[key]) - found}
            if found <= {default}:
                missing.add(key)
    for section, classes in CLASSES.items():
        defaults, words = {}, {}
        for owner in classes().values():
            hints = get_type_hints(owner, include_extras=True)
            for entry in fields(owner):
                words.setdefault(entry.name, set()).update(choices(hints[entry.name]))
                default = entry.default
                default = default.name if isinstance(default, Choice) else default
                defaults[owner.name, entry.name] = default
        tables = [table for config in configs if (table := config.tables.get(section))]
        for key in words:
            values = [(table["name"], table[key]) for table in tables if key in table]
            missing |= {f"{key} {word}" for word in words[key] - {value for _, value in values}}
            if all(value == defaults.get((name, key), MISSING) for name, value in values):
                missing.add(key)
    missing -= {"out"}
    assert " ".join(sorted(missing - set(LEFT_OUT))) == ""
    assert " ".join(sorted(set(LEFT_OUT) - missing)) == ""
