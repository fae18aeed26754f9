"""What a resumed run needs, removes, compares and refuses."""

import os
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.stored_tensors import write_checkpoint
from wirelessfl.config import Config
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.build.computing import Computing, without_gpu
from wirelessfl.runs.folder.about import LAYOUT
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.kept import is_finished, kept_run
from wirelessfl.runs.targets import Monitor


def test_resume_removes_rows_after_the_checkpoint(config, toy, same):
    """Rows after the checkpoint, and an incomplete row, are removed and written again."""
    reference = wirelessfl.run(config(rounds=5), data=toy)

    class Halt(Exception):
        pass

    def halt(row):
        if row["round"] == 4:
            raise Halt

    settings = config(rounds=5, checkpoint_seconds=0)
    with pytest.raises(Halt):
        wirelessfl.run(settings, data=toy, on_row=halt)
    rows = settings.run.out / "rows.jsonl"
    assert len(rows.read_text().splitlines()) == 5
    with rows.open("a") as file:
        file.write('{"round": 5, "accu')
    (settings.run.out / "checkpoint.safetensors.part").write_bytes(b"half a checkpoint")
    same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_a_run_that_began_on_a_gpu_continues_on_a_cpu(config, toy, same, monkeypatch, halt_at):
    """Its folder names a device that this machine lacks, and a chunk for that device."""
    reference = wirelessfl.run(config(rounds=3), data=toy)

    on_cpu = Computing.settings

    def on_gpu(computing):
        return on_cpu(computing) | {"device": "cuda:7", "workers": 1}

    settings = config(rounds=3, checkpoint_seconds=0)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with monkeypatch.context() as gpu:
        gpu.setattr(Computing, "settings", on_gpu)
        gpu.setattr("torch.cuda.get_device_name", lambda device: "GPU of a test")
        with pytest.raises(KeyboardInterrupt):
            wirelessfl.run(settings, data=toy, on_row=halt_at(2))
    stored = Config.from_toml(settings.run.out / "config.toml")
    assert stored.run.device == "cuda:7"
    notes = []
    same(wirelessfl.resume(settings.run.out, data=toy, on_note=notes.append), reference)
    assert "the run began on cuda:7, which torch does not find here" in notes[0]


@pytest.mark.parametrize(
    ("device", "gpus", "used"),
    [("cuda:3", 1, "cuda:0"), ("cuda:3", 4, None), ("cuda", 1, None), ("cpu", 1, None)],
)
def test_a_run_that_began_on_another_gpu_continues_on_the_first(device, gpus, used, monkeypatch):
    """Sweeps number the GPUs of a machine; another one may have fewer."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    began = Config.from_flags("fedavg", device=device)
    config, note = without_gpu(began)
    if used is None:
        assert (config, note) == (began, None)
    else:
        assert config == began.with_run({"device": used})
        assert note == (
            "the run began on cuda:3, which torch does not find here: it continues on the first GPU"
        )


def test_resume_without_a_checkpoint_starts_again(config, toy, same):
    reference = wirelessfl.run(config(rounds=2), data=toy)
    settings = build(config(rounds=2), data=toy).config
    create(settings.run.out, settings)
    same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_resuming_a_finished_run_changes_nothing(config, toy, same):
    result = wirelessfl.run(config(), data=toy)
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in result.directory.iterdir()}
    same(wirelessfl.resume(result.directory, data=toy), result)
    after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in result.directory.iterdir()}
    assert after == before


def test_a_failed_checkpoint_keeps_the_old_one(config, toy, monkeypatch):
    settings = config(rounds=2)
    directory, state = create(settings.run.out, settings), {"finished": False, "fingerprint": ""}
    directory.save({"x": torch.ones(3)}, state | {"note": 1})

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ConfigError, match="cannot be written: no space left"):
        directory.save({"x": torch.zeros(3)}, state | {"note": 2})
    monkeypatch.undo()
    tensors, state = directory.load()
    assert torch.equal(tensors["x"], torch.ones(3))
    assert state["note"] == 1
    assert not list(settings.run.out.glob("*.part"))


def test_resume_needs_the_given_objects(config, toy, same, network_of, halt_at):
    """To resume, data from Python must be given again; a network may be, and must be equal."""
    other = replace(toy, train_inputs=toy.train_inputs.flip(0))
    even, uneven = network_of([0, 0, 0, 1, 1, 1]), network_of([0, 0, 0, 0, 0, 1])
    reference = wirelessfl.run(config(network=True, rounds=4), data=toy, network=even)
    halted = config(network=True, rounds=4, checkpoint_seconds=0)

    notes = []
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(halted, data=toy, network=even, on_row=halt_at(2), on_note=notes.append)
    out = halted.run.out
    assert notes == [f"interrupted; to resume: wirelessfl resume {out}"]
    for given, message in (
        (
            {},
            r"belong to a run with data=\.\.\. given to wirelessfl.run, and do not describe it: "
            r"give data=\.\.\. again from Python",
        ),
        ({"network": even}, r"give data=\.\.\. again"),
        ({"data": toy, "network": uneven}, "the network has changed since the run began"),
        ({"data": toy, "network": network_of([0, 0, 0, 1, 1, 1], 2e9)}, "the network has changed"),
        (
            {"data": other, "network": even},
            r"the data \(samples, split\) has changed .* Restore it, or start a new run\.$",
        ),
    ):
        with pytest.raises(wirelessfl.ConfigError, match=message):
            wirelessfl.resume(out, **given)
    same(wirelessfl.resume(out, data=toy, network=even), reference)


def test_changed_settings_are_refused(config, toy):
    result = wirelessfl.run(config(), data=toy)
    file = result.directory / "config.toml"
    file.write_text(file.read_text().replace("rounds = 3", "rounds = 9"))
    with pytest.raises(wirelessfl.ConfigError, match=r"settings in config\.toml are not those"):
        wirelessfl.resume(result.directory, data=toy)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("hist", {"cells": 2}),
        ("hfedavg", {"cells": 2, "schedule": "buffered", "buffer": 1, "step_seconds": 0.1}),
        ("fedavg", {"validation_fraction": 0.2}),
    ],
)
def test_a_run_stops_at_its_target(config, toy, name, flags):
    """Its rows are those of the whole run up to the target."""
    flags = {"rounds": 8, "target": 0.7, "lr": 0.1, "checkpoint_seconds": 0} | flags
    whole = wirelessfl.run(config(name, **flags), data=toy)
    flags["stop_at_target"] = True
    stopped = wirelessfl.run(config(name, **flags), data=toy)
    *before, last = (Monitor.of(None, row).score(row) for row in stopped.rows)
    assert max(before) < 0.7 <= last
    assert 1 < len(stopped.rows) < len(whole.rows)
    for row, other in zip(stopped.rows, whole.rows, strict=False):
        assert row | {"wall_seconds": 0} == other | {"wall_seconds": 0}
    assert stopped.summary()["rounds_to_target"] == stopped.rows[-1]["round"]


def halted_run(config, toy, **given):
    """The settings of a run that was interrupted after its second round."""
    settings = config(rounds=4, checkpoint_seconds=0)

    def halt(row):
        if row["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt, **given)
    return settings


def test_two_processes_do_not_share_a_run(config, toy):
    out = halted_run(config, toy).run.out
    with (
        RunFolder(out).at_work(),
        pytest.raises(wirelessfl.ConfigError, match="another process is using"),
    ):
        wirelessfl.resume(out, data=toy)


def test_frozen_parameters_and_test_data_are_compared(config, toy):
    def frozen(seed):
        torch.manual_seed(seed)
        module = FCNN((12,), 4, hidden=(9, 8))
        for parameter in module.layers[1].parameters():
            parameter.requires_grad_(False)
        return module

    halted = halted_run(lambda **k: config("hfedavg", **k), toy, model=frozen(1)).run.out
    with pytest.raises(wirelessfl.ConfigError, match=r"frozen parameters, buffers\) has changed"):
        wirelessfl.resume(halted, data=toy, model=frozen(2))
    other = replace(toy, test_inputs=-toy.test_inputs)
    with pytest.raises(wirelessfl.ConfigError, match=r"the data \(samples, split\) has changed"):
        wirelessfl.resume(halted, data=other, model=frozen(1))
    assert wirelessfl.resume(halted, data=toy, model=frozen(1)).rows[-1]["round"] == 4


def test_buffers_are_compared_even_if_not_persistent(config, toy):
    class Scaled(FCNN):
        def __init__(self, scale):
            super().__init__((12,), 4, hidden=(9, 8))
            self.register_buffer("scale", torch.full((12,), scale), persistent=False)

        def get_extra_state(self):
            return {"version": 1}

        def set_extra_state(self, state):
            assert state == {"version": 1}

        def forward(self, x):
            return super().forward(x * self.scale)

    torch.manual_seed(1)
    halted = halted_run(lambda **k: config("hfedavg", **k), toy, model=Scaled(1.0)).run.out
    with pytest.raises(wirelessfl.ConfigError, match=r"frozen parameters, buffers\) has changed"):
        wirelessfl.resume(halted, data=toy, model=Scaled(5.0))
    assert wirelessfl.resume(halted, data=toy, model=Scaled(1.0)).rows[-1]["round"] == 4


def test_dropout_keys_are_not_compared(config, toy):
    """A checkpoint with different dropout keys, which change in every step, is accepted."""
    settings = {"executor": "vmap", "chunk": None, "dropout": 0.5}
    halted = halted_run(lambda **k: config("hfedavg", **(k | settings)), toy)
    assert wirelessfl.resume(halted.run.out, data=toy).rows[-1]["round"] == 4


def test_a_finished_run_needs_neither_data_nor_device(config, toy, same):
    """The result is read from the run's folder; a damaged row is reported."""
    result = wirelessfl.run(config(), data=toy)
    again = wirelessfl.resume(result.directory)
    same(again, result)
    rows = result.directory / "rows.jsonl"
    whole = rows.read_text()
    rows.write_text(whole.replace('"accuracy"', "'accuracy'", 1))
    with pytest.raises(wirelessfl.ConfigError, match=r"rows\.jsonl, line 1 is damaged"):
        wirelessfl.resume(result.directory)
    first, *others = whole.splitlines(keepends=True)
    for junk in ("[]", "{}"):
        rows.write_text(f"{junk:{len(first) - 1}}\n" + "".join(others))
        with pytest.raises(wirelessfl.ConfigError, match="line 1 is damaged: it is not a row"):
            wirelessfl.resume(result.directory)


@pytest.mark.parametrize("finished", [True, False])
def test_a_folder_of_another_layout_or_numerics_is_refused(config, toy, finished):
    settings = config("fedavg", checkpoint_seconds=0)

    def halt(row):
        if not finished:
            raise KeyboardInterrupt

    with nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt)
    directory = RunFolder(settings.run.out)
    tensors, state = directory.load()
    for layout in (None, "x", LAYOUT - 1, LAYOUT + 1):
        write_checkpoint(directory.checkpoint_file, tensors, state | {"layout": layout})
        message = rf"another version of wirelessfl \(layout {layout!r}, this .* {LAYOUT}\).* NEW"
        stored = wirelessfl.load(settings.run.out)
        assert (stored.rows, stored.finished) == (directory.rows(), finished)
        with pytest.raises(ConfigError, match=message):
            wirelessfl.resume(settings.run.out)
        with pytest.raises(ConfigError, match=message):
            _ = stored.params
    file = directory.path / "config.toml"
    text = file.read_text()
    assert '[split]\nname = "noniid"' in text
    file.write_text(text.replace("[split]", "[gone]"))  # as if another version had other settings
    with pytest.raises(ConfigError, match=r"written by another version of wirelessfl") as caught:
        wirelessfl.resume(settings.run.out, data=toy)
    assert "\n" not in str(caught.value)
    file.write_text(text)
    write_checkpoint(directory.checkpoint_file, tensors, state | {"numerics": 0})
    if finished:
        assert wirelessfl.resume(settings.run.out).rows
        return
    with pytest.raises(ConfigError, match=r"has numerics 0, but this version"):
        wirelessfl.resume(settings.run.out, data=toy)


def test_unknown_settings_in_a_stored_file_are_refused(tmp_path):
    """Errors of ``resume`` and ``kept_run`` name the file; ``is_finished`` returns False."""
    config = Config.from_flags("fedavg", rounds=1, local_steps=1, threads=1, clients=4)
    made = kept_run(config, tmp_path)
    file = made.directory / "config.toml"
    file.write_text(file.read_text().replace("momentum", "inertia"))
    (made.directory / "checkpoint.safetensors").unlink()
    (made.directory / "rows.jsonl").unlink()
    for act in (lambda: wirelessfl.resume(made.directory), lambda: kept_run(config, tmp_path)):
        with pytest.raises(ConfigError, match=r"config.toml: unknown setting 'inertia'") as caught:
            act()
        assert str(caught.value).endswith("Restore it, or start a new run.")
        assert "\n" not in str(caught.value)
    assert not is_finished(config, tmp_path)
