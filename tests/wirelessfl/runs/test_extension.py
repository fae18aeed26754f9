"""Extended runs equal runs that were started with the later end; what may differ is refused."""

import json
import shutil

import numpy as np
import pytest

import wirelessfl
from tests.wirelessfl.small import alike
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.observers import Observer
from wirelessfl.runs import run as running
from wirelessfl.runs.folder import run_folder
from wirelessfl.runs.folder.run_folder import InUseError, RunFolder


def stored(path):
    """Tensors and state of a checkpoint without what a clock on the wall determines."""
    tensors, state = RunFolder(path).load()
    for name in ("wall_seconds", "rows_checksum", "rows_bytes", "tensors_checksum"):
        state.pop(name)
    return tensors, state


def settings_of(path):
    lines = (path / "config.toml").read_text().splitlines()
    return [line for line in lines if not line.startswith("out = ")]


def equal(one, other, same):
    """The same rows, parameters, checkpoint and settings."""
    same(one, other)
    (tensors, state), (others, other_state) = stored(one.directory), stored(other.directory)
    assert state == other_state
    assert tensors.keys() == others.keys()
    assert all(map(alike, tensors.values(), (others[name] for name in tensors)))
    assert settings_of(one.directory) == settings_of(other.directory)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("hist", {"dropout": 0.2}),
        ("scaffold", {"clients_per_round": 3, "client_states": "disk"}),
        ("hfedavg", {"eval_every": 2}),
    ],
)
def test_more_rounds_equal_those_of_a_longer_run(config, toy, same, algorithm, flags):
    """With eval_every=2, the row of the last of 3 rounds is not in the longer run."""
    first = wirelessfl.run(config(algorithm, rounds=3, **flags), data=toy)
    longer = wirelessfl.run(config(algorithm, rounds=5, **flags), data=toy)
    equal(wirelessfl.resume(first.directory, rounds=np.int64(5), data=toy), longer, same)
    told = json.loads((first.directory / "about.json").read_text())
    (entry,) = told["extended"]
    assert (entry["old"], entry["new"]) == ({"rounds": 3}, {"rounds": 5})
    assert len(told["resumed"]) == 1


@pytest.mark.parametrize(("target", "ended"), [(0.3, 0), (0.97, 1)])
def test_a_higher_target_equals_that_of_a_new_run(config, toy, same, target, ended):
    """Also if the initial model has reached the old target."""
    flags = {"rounds": 4, "stop_at_target": True}
    first = wirelessfl.run(config(target=target, **flags), data=toy)
    assert first.rows[-1]["round"] == ended
    longer = wirelessfl.run(config(target=0.999, **flags), data=toy)
    with pytest.raises(ConfigError, match=r"the run ended at target=0\.\d+: give a better target"):
        wirelessfl.resume(first.directory, rounds=20, data=toy)
    equal(wirelessfl.resume(first.directory, target=0.999, data=toy), longer, same)


def test_a_lower_loss_is_a_later_target(config, toy, same):
    flags = {"rounds": 4, "monitor": "loss"}
    loss = [row["loss"] for row in wirelessfl.run(config(**flags), data=toy).rows]
    flags["stop_at_target"] = True
    first = wirelessfl.run(config(target=loss[1], **flags), data=toy)
    assert first.rows[-1]["round"] == 1
    with pytest.raises(ConfigError, match=r"target is 99: the run has .*; give a smaller value"):
        wirelessfl.resume(first.directory, target=99, data=toy)
    longer = wirelessfl.run(config(target=loss[2], **flags), data=toy)
    equal(wirelessfl.resume(first.directory, target=loss[2], data=toy), longer, same)


@pytest.mark.parametrize("rounds", [2, 3])
def test_best_parameters_of_a_row_that_a_longer_run_lacks(config, toy, rounds):
    """With eval_every=2, those of round 2 are lost once round 3, the last one, is better."""
    flags = {"eval_every": 2, "keep_best": True, "monitor": "loss"}
    first = wirelessfl.run(config(rounds=rounds, **flags), data=toy)
    if rounds == 2:
        assert wirelessfl.resume(first.directory, rounds=4, data=toy).rows[-1]["round"] == 4
        return
    with pytest.raises(ConfigError, match="has kept its best parameters in round 3, which a lon"):
        wirelessfl.resume(first.directory, rounds=4, data=toy)


def test_patience_counts_the_rows_before_the_old_end(config, toy, same):
    """With a large ``min_delta``, only the first row is an improvement."""
    flags = {"patience": 3, "min_delta": 0.9, "eval_every": 1}
    first = wirelessfl.run(config(rounds=2, **flags), data=toy)
    longer = wirelessfl.run(config(rounds=5, **flags), data=toy)
    assert longer.rows[-1]["round"] == 3
    equal(wirelessfl.resume(first.directory, rounds=5, data=toy), longer, same)
    message = (
        r"it ended because accuracy has not improved by more than 0\.9 in 3 evaluations, since .*, "
        r"and a run with the later end would have ended there, too\. Start a new run: "
        r"wirelessfl run --config \S+ .*--patience 6"
    )
    with pytest.raises(ConfigError, match=message):
        wirelessfl.resume(first.directory, rounds=9, data=toy)


def test_a_run_that_an_observer_has_ended_is_not_extended(config, toy):
    class Enough(Observer):
        def row(self, run, row):
            return "it is enough" if row["round"] == 1 else None

    first = wirelessfl.run(config(rounds=3), data=toy, observers=[Enough()])
    with pytest.raises(
        ConfigError, match=r"ended because it is enough, .* without what ended it\."
    ):
        wirelessfl.resume(first.directory, rounds=5, data=toy)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("every", "done"), [(1, 2), (3, 2), (1, 0)])
def test_more_seconds_equal_those_of_a_longer_run(config, toy, same, every, done):
    """The row at the old end is removed: the longer run has none there."""
    flags = {"rounds": 6, "eval_every": every}
    seconds = [row["sim_seconds"] for row in wirelessfl.price(config(rounds=6), data=toy).rows]
    ends = [(seconds[number] + seconds[number + 1]) / 2 for number in (done, 4)]
    first = wirelessfl.run(config(max_seconds=ends[0], **flags), data=toy)
    assert first.rows[-1]["round"] == done
    longer = wirelessfl.run(config(max_seconds=ends[1], **flags), data=toy)
    assert longer.rows[-1]["round"] == 4
    equal(wirelessfl.resume(first.directory, max_seconds=ends[1], data=toy), longer, same)
    with pytest.raises(
        ConfigError, match=r"the run ended at max_seconds=.*: give more max_seconds"
    ):
        wirelessfl.resume(first.directory, rounds=9, data=toy)


def test_an_interrupted_run_is_extended(config, toy, same, halt_at):
    settings = config(rounds=3, checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt_at(2))
    longer = wirelessfl.run(config(rounds=5, checkpoint_seconds=0), data=toy)
    equal(wirelessfl.resume(settings.run.out, rounds=5, data=toy), longer, same)


class Killed(BaseException):
    pass


STEPS = ["extend", "_replace_settings", "replacing", "Execution"]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_is_killed_while_it_is_extended_can_be_resumed(
    config, toy, same, monkeypatch, step
):
    """Before the checkpoint changes, the run is as it was; afterwards it is to be resumed.

    The steps are the checkpoint, ``about.json``, ``config.toml`` and the training.
    """
    first = wirelessfl.run(config(rounds=2), data=toy)
    longer = wirelessfl.run(config(rounds=4), data=toy)
    replacing = run_folder.replacing

    def killed(*args):
        if step == "replacing" and args[0].name != "config.toml":
            return replacing(*args)
        raise Killed

    owner = {"replacing": run_folder, "Execution": running}.get(step, RunFolder)
    monkeypatch.setattr(owner, step, killed)
    with pytest.raises(Killed):
        wirelessfl.resume(first.directory, rounds=4, data=toy)
    monkeypatch.undo()
    stored_run = wirelessfl.load(first.directory)
    if step == "extend":
        same(wirelessfl.resume(first.directory, data=toy), first)
        resumed = wirelessfl.resume(first.directory, rounds=4, data=toy)
    else:
        assert (stored_run.finished, stored_run.total_rounds) == (False, 4)
        assert stored_run.config.training.rounds == 4
        resumed = wirelessfl.resume(first.directory, data=toy)
    equal(resumed, longer, same)
    told = json.loads((first.directory / "about.json").read_text())
    assert [entry["new"] for entry in told["extended"]] == [{"rounds": 4}]


def test_a_killed_extension_is_extended_and_its_settings_are_compared(
    config, toy, same, monkeypatch
):
    first = wirelessfl.run(config(rounds=2), data=toy)
    longer = wirelessfl.run(config(rounds=5), data=toy)

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "_replace_settings", killed)
        with pytest.raises(Killed):
            wirelessfl.resume(first.directory, rounds=4, data=toy)
    file = first.directory / "config.toml"
    text = file.read_text()
    file.write_text(text.replace("rounds = 2", "rounds = 3"))
    with pytest.raises(ConfigError, match=r"settings in config\.toml are not those"):
        wirelessfl.resume(first.directory, data=toy)
    file.write_text(text)
    equal(wirelessfl.resume(first.directory, rounds=np.int64(5), data=toy), longer, same)
    told = json.loads((first.directory / "about.json").read_text())
    assert [entry["new"] for entry in told["extended"]] == [{"rounds": 4}, {"rounds": 5}]


def test_the_settings_of_a_killed_extension_name_no_code_without_trust(config, toy):
    """They are in the checkpoint, which may come from somebody else."""
    first = wirelessfl.run(config(rounds=2), data=toy)
    directory, _ = RunFolder.open(first.directory, False)
    text = directory.config_file.read_text().replace('name = "noniid"', 'name = "theirs:Split"')
    tensors, state = directory.load()
    extends = {"began": directory.fingerprint(), "text": text, "entry": {}}
    directory.save(tensors, {**state, "extends": extends})
    with pytest.raises(ConfigError, match="importing it runs code"):
        wirelessfl.resume(first.directory, data=toy)


def test_one_process_at_a_time_continues_a_killed_extension(config, toy):
    """Its settings replace ``config.toml``, the file that is locked."""
    first = wirelessfl.run(config(rounds=2), data=toy)
    directory, settings = RunFolder.open(first.directory, False)
    late, _ = RunFolder.open(first.directory, False)
    directory.extend(directory.load(), settings.changed(rounds=3), {"new": {"rounds": 3}})
    with directory.at_work():
        for other in (late, RunFolder(first.directory)):
            with pytest.raises(InUseError, match="another process is using"), other.at_work():
                pass
    with pytest.raises(InUseError, match="another process extends it"), late.at_work():
        pass


def test_an_extension_of_a_checkpoint_without_its_rounds_is_refused(config, toy):
    first = wirelessfl.run(config(rounds=2), data=toy)
    directory = RunFolder(first.directory)
    tensors, state = directory.load()
    for schedule in ({}, {"rounds_done": "2"}):
        directory.save(tensors, state | {"schedule": schedule})
        with pytest.raises(ConfigError, match=r"checkpoint\.safetensors is damaged: .* Restore it"):
            wirelessfl.resume(first.directory, rounds=3, data=toy)


REFUSED = [
    ("hist", {}, {"rounds": 1}, r"rounds is 1: the run has 2; give a larger value\."),
    ("hist", {}, {"rounds": "many"}, r"training\.rounds is 'many': give a whole number"),
    ("hist", {}, {"target": 0.9}, r"the run ended at rounds=2: give more rounds\."),
    ("hist", {}, {"rounds": 4, "target": 0.1}, r"target is 0\.1: the run has reached 0\.\d+ in r"),
    ("hist", {}, {"rounds": 4, "target": 2.0}, "target is 2"),
    ("hist", {}, {"max_seconds": 10.0}, r"max_seconds is 10: the run has no max_seconds, but"),
    (
        "fedavg",
        {"lr_schedule": "poly"},
        {"rounds": 4},
        r"lr_schedule=poly: step sizes depend on the number of rounds, so the first 2 of 4",
    ),
    ("fedavg", {"sessions": 2}, {"rounds": 4}, r"sessions=2: a run in sessions cannot"),
    ("fedavg", {"sessions": 2}, {"rounds": 1}, r"sessions=2: a run in sessions cannot"),
    ("hfedavg", {"schedule": "buffered"}, {"rounds": 4}, r"schedule=buffered: such a run cannot"),
    ("hfedavg", {"schedule": "buffered"}, {"target": 0.9}, r"schedule=buffered: such a run cannot"),
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("algorithm", "flags", "later", "message"), REFUSED)
def test_what_would_differ_is_refused(config, toy, algorithm, flags, later, message):
    """Nothing is changed."""
    first = wirelessfl.run(config(algorithm, **({"rounds": 2} | flags)), data=toy)
    before = {file.name: file.read_bytes() for file in first.directory.iterdir()}
    with pytest.raises(ConfigError, match=message):
        wirelessfl.resume(first.directory, **later, data=toy)
    assert {file.name: file.read_bytes() for file in first.directory.iterdir()} == before


def test_runs_of_sweeps_and_of_other_numerics_are_refused(config, toy, same, monkeypatch):
    """The copy of a run of a sweep can be extended, also that of a priced run."""
    flags = {"clients": 4, "local_steps": 1, "threads": 1, "dataset": "digits"}
    root = config().run.out
    configs = wirelessfl.combinations("fedavg", flags | {"rounds": 1, "uplink": ["tdma", "ofdma"]})
    priced = wirelessfl.sweep(configs, root)[1].directory
    with pytest.raises(
        ConfigError, match=r"Extend a copy: cp -r \S+ NEW; wirelessfl resume NEW --r"
    ):
        wirelessfl.resume(priced, rounds=2)
    copy = root / "copy"
    shutil.copytree(priced, copy)
    (longer,) = wirelessfl.combinations("fedavg", flags | {"rounds": 2, "uplink": "ofdma"})
    equal(
        wirelessfl.resume(copy, rounds=2),
        wirelessfl.run(longer.with_run({"out": root / "new"})),
        same,
    )
    monkeypatch.setattr("wirelessfl.runs.folder.run_folder.NUMERICS", 99)
    with pytest.raises(ConfigError, match="has numerics 1, but this version"):
        wirelessfl.resume(copy, rounds=3)


def test_the_command_extends_a_run(tmp_path, capsys):
    small = "--dataset digits --clients 4 --local-steps 1 --threads 1".split()
    assert main(["run", "fedavg", *small, "--rounds", "1", "--out", f"{tmp_path}/run"]) == 0
    assert main(["resume", f"{tmp_path}/run", "--rounds", "2", "--json"]) == 0
    capsys.readouterr()
    assert wirelessfl.resume(tmp_path / "run").rows[-1]["round"] == 2
    assert main(["resume", f"{tmp_path}/run", "--rounds", "1"]) == 2
    assert "rounds is 1: the run has 2; give a larger value." in capsys.readouterr().err
    assert main(["resume", f"{tmp_path}/run", "--rounds", "2"]) == 0
    assert "has finished: nothing is left to do" in capsys.readouterr().err


ENDS = [
    ({"rounds": 2}, {"rounds": 5}),
    ({"rounds": 5, "target": 0.3, "stop_at_target": True}, {"target": 0.999}),
    ({"rounds": 5, "max_seconds": 1e-9}, {"max_seconds": 1e9}),
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("begun", "later"), ENDS)
def test_the_command_of_a_killed_extension_is_repeated(config, toy, same, halt_at, begun, later):
    """It continues, and once the run has finished, it changes nothing."""
    own = {"checkpoint_seconds": 0}
    first = wirelessfl.run(config(**begun, **own), data=toy)
    longer = wirelessfl.run(config(**begun | later, **own), data=toy)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.resume(first.directory, **later, data=toy, on_row=halt_at(2))
    notes = []
    for _ in range(2):
        found = wirelessfl.resume(first.directory, **later, data=toy, on_note=notes.append)
        equal(found, longer, same)
    assert notes[-1] == f"the run in {first.directory} has finished: nothing is left to do"
    assert len(RunFolder(first.directory).about()["extended"]) == 1
