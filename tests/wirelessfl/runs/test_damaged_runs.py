"""Damaged, unreadable and incomplete files of a run are named, and nothing is lost."""

import os
from contextlib import nullcontext

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.runs.folder.log import Log
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.runs.folder.run_folder import RunFolder

FILES = ("checkpoint.safetensors", "rows.jsonl", "config.toml")


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("junk", [b"", b"not a checkpoint", b"\x10\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_damaged_checkpoint_is_named(config, toy, junk):
    result = wirelessfl.run(config(), data=toy)
    (result.directory / "checkpoint.safetensors").write_bytes(junk)
    with pytest.raises(wirelessfl.ConfigError, match=r"checkpoint\.safetensors is damaged"):
        wirelessfl.resume(result.directory, data=toy)


def test_an_unreadable_checkpoint_is_not_called_damaged(config, toy, monkeypatch):
    result = wirelessfl.run(config(), data=toy)
    refused = result.directory / "checkpoint.safetensors"
    monkeypatch.setattr(os, "access", lambda path, _: path != refused)
    with pytest.raises(wirelessfl.ConfigError, match=r"safetensors cannot be read: permission"):
        wirelessfl.resume(result.directory, data=toy)


def test_a_checkpoint_has_the_permissions_of_the_rows(config, toy):
    result = wirelessfl.run(config(), data=toy)
    modes = {name: (result.directory / name).stat().st_mode for name in FILES}
    assert len(set(modes.values())) == 1, modes


@pytest.mark.parametrize("note", [None, {"state": "3", "checksum": "1842515611"}])
def test_a_checkpoint_without_state_is_named(config, toy, note):
    result = wirelessfl.run(config(), data=toy)
    save_file({"params": torch.zeros(2)}, result.directory / "checkpoint.safetensors", note)
    with pytest.raises(
        wirelessfl.ConfigError,
        match=r"is damaged: its? (has no state of a run|state differs from its checksum)",
    ):
        wirelessfl.resume(result.directory, data=toy)


def test_a_full_disk_is_reported_with_the_way_to_go_on(tmp_path, config, monkeypatch):
    directory = create(tmp_path / "run", config())

    def full(*_, **__):
        raise SafetensorError("No space left on device")

    directory.append({"round": 0, "accuracy": 0.5})
    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(ConfigError, match=r"safetensors cannot be written: No space .* resume"):
        directory.save({}, {"finished": False})
    names = {file.name for file in directory.path.iterdir()}
    assert names == {"config.toml", "about.json", "rows.jsonl"}
    (directory.path / "rows.jsonl").unlink()
    (directory.path / "rows.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"rows\.jsonl is damaged: Is a directory"):
        RunFolder(directory.path).append({})


def test_missing_rows_are_reported(config, toy, same, halt_at):
    settings = config(rounds=5, checkpoint_seconds=0)

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt_at(3))
    rows = settings.run.out / "rows.jsonl"
    whole = rows.read_bytes()
    rows.write_bytes(whole[:40])
    with pytest.raises(wirelessfl.ConfigError, match="has 40 bytes, but the checkpoint needs"):
        wirelessfl.resume(settings.run.out, data=toy)
    assert rows.read_bytes() == whole[:40]
    rows.write_bytes(whole)
    same(wirelessfl.resume(settings.run.out, data=toy), wirelessfl.run(config(rounds=5), data=toy))


def test_missing_rows_of_a_finished_run_are_reported(config, toy):
    settings = config(rounds=3)
    wirelessfl.run(settings, data=toy)
    rows = settings.run.out / "rows.jsonl"
    whole = rows.read_bytes()
    for left in (whole[:-40], whole[: whole.index(b"\n") + 1], b""):
        rows.write_bytes(left)
        with pytest.raises(ConfigError, match=f"has {len(left)} bytes, but the checkpoint needs"):
            wirelessfl.resume(settings.run.out)
    rows.unlink()
    with pytest.raises(ConfigError, match="has 0 bytes, but the checkpoint needs"):
        wirelessfl.resume(settings.run.out)
    remedy = (
        r".*\. Restore it, or start a new run: wirelessfl run --config .*config\.toml --out NEW"
    )
    rows.write_bytes(b"\xff" * (len(whole) - 1) + b"\n")
    with pytest.raises(
        ConfigError, match=rf"rows\.jsonl, line 1 is damaged: 'utf-8' codec{remedy}"
    ):
        wirelessfl.resume(settings.run.out)


def rows_of_run(settings, data, on_row):
    """Train until the end, or until ``on_row`` interrupts; returns the file of the rows."""
    with nullcontext() if on_row is None else pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=data, on_row=on_row)
    return settings.run.out / "rows.jsonl"


@pytest.mark.parametrize("finished", [False, True])
def test_a_missing_checkpoint_is_named(config, toy, finished, halt_at):
    """Its rows are neither lost nor written again by a second training."""
    settings = config(checkpoint_seconds=0)
    rows = rows_of_run(settings, toy, None if finished else halt_at(2))
    before = rows.read_bytes()
    (settings.run.out / "checkpoint.safetensors").unlink()
    message = (
        r"checkpoint\.safetensors is missing, but .* Restore .* or start a new run: wirelessfl"
    )
    with pytest.raises(ConfigError, match=message):
        wirelessfl.resume(settings.run.out, data=toy)
    assert rows.read_bytes() == before


@pytest.mark.parametrize("finished", [False, True])
def test_a_damaged_line_is_named_before_the_run_continues(config, toy, finished, halt_at):
    settings, resumed = config(checkpoint_seconds=0), []
    rows = rows_of_run(settings, toy, None if finished else halt_at(3))
    lines = rows.read_text().splitlines()
    number = len(lines) if finished else 2
    lines[number - 1] = "{" * len(lines[number - 1])
    rows.write_text("\n".join(lines) + "\n")
    message = rf"rows\.jsonl, line {number} is damaged: .* Restore it, or start a new run: "
    with pytest.raises(ConfigError, match=message):
        wirelessfl.resume(settings.run.out, data=toy, on_row=resumed.append)
    assert not resumed


def test_a_full_disk_at_the_start_keeps_the_run(config, toy, monkeypatch, same):
    """The error advises to resume it."""
    settings = config()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", full)
        patch.setattr(RunFolder, "save", lambda *_: None)
        with pytest.raises(ConfigError, match=r"rows\.jsonl cannot be written: No space"):
            wirelessfl.run(settings, data=toy)
    same(wirelessfl.resume(settings.run.out, data=toy), wirelessfl.run(config(), data=toy))
