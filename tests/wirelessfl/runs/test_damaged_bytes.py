"""Any damaged byte of a run's files is noticed before training, in one line that names the file."""

import json
import os
import shutil
import tomllib
import zlib
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.stored_tensors import read_checkpoint, write_checkpoint
from wirelessfl.config import Config
from wirelessfl.runs.folder.client_log import ClientLogFile
from wirelessfl.runs.folder.identity import fingerprint_of
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.runs.folder.run_folder import RunFolder

CHECKPOINT = "checkpoint.safetensors"


def refused(act, file):
    """The message of the error: one line that names the file and says what to do."""
    with pytest.raises(ConfigError) as caught:
        act()
    message = str(caught.value)
    assert str(file) in message
    assert "\n" not in message
    assert "tart a new run" in message
    return message


def test_every_flipped_bit_of_a_checkpoint_is_noticed(tmp_path, config):
    """One of each byte: in the header's length, the header with its metadata, and the payload."""
    directory = create(tmp_path / "run", config())
    file = directory.path / CHECKPOINT
    tensors = {"params": torch.arange(3.0), "who": torch.tensor([4]), "on": torch.tensor(True)}
    directory.save(tensors, {"finished": False, "fingerprint": "", "rounds": 2})
    whole = file.read_bytes()
    assert directory.load()[1]["rounds"] == 2
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place * 5 % 8
        file.write_bytes(damaged)
        refused(directory.load, file)
    for end in range(0, len(whole), 31):
        file.write_bytes(whole[:end])
        refused(directory.load, file)
    file.write_bytes(whole)
    assert torch.equal(directory.load()[0]["params"], tensors["params"])


SETTINGS = {
    "local": "scaffold",
    "client_states": "disk",
    "cells": 2,
    "clients": 6,
    "rounds": 5,
    "local_steps": 1,
    "edge_rounds": 1,
    "threads": 1,
    "chunk": 4,
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory, toy):
    """Folders of a run that was interrupted after its third round, and of a finished one."""
    folder = tmp_path_factory.mktemp("runs")

    def halt(row):
        if row["round"] == 3:
            raise KeyboardInterrupt

    for name, on_row in (("halted", halt), ("finished", None)):
        config = Config.from_flags("hfedavg", **SETTINGS, out=folder / name)
        with nullcontext() if on_row is None else pytest.raises(KeyboardInterrupt):
            wirelessfl.run(config, data=toy, on_row=on_row)
    return folder


@pytest.fixture
def halted(stored, tmp_path):
    """A run with client states on disk that was interrupted after its third round."""
    return shutil.copytree(stored / "halted", tmp_path / "halted")


@pytest.fixture
def finished(stored, tmp_path):
    return shutil.copytree(stored / "finished", tmp_path / "finished")


@pytest.fixture
def unread(monkeypatch):
    """Makes the test fail where data are read and the setup is built."""

    def build(*_, **__):
        raise AssertionError("data have been read")

    monkeypatch.setattr("wirelessfl.runs.run.build_resolved", build)


def flipped(data):
    return data[:-3] + bytes([data[-3] ^ 16]) + data[-2:]


def edited(data):
    """Another value in the first line, which has the same number of bytes."""
    key = b'"joules": '
    end = data.index(key) + len(key)
    return data[:end] + (b"1" if data[end : end + 1] != b"1" else b"2") + data[end + 1 :]


def swapped(data):
    """A log of three rounds with six clients, whose last two records have changed places."""
    size = len(data) // 18
    return data[: -2 * size] + data[-size:] + data[-2 * size : -size]


DAMAGE = {
    "flipped": flipped,
    "last page of zeros": lambda data: data[:-4096] + bytes(min(4096, len(data))),
    "zeros": lambda data: bytes(len(data)),
    "ones": lambda data: b"\xff" * len(data),
    "truncated": lambda data: data[:-1],
    "empty": lambda data: b"",
    "deleted": None,
}
CASES = [
    *((CHECKPOINT, kind) for kind in DAMAGE),
    *(("clients-0.log", kind) for kind in (*DAMAGE, "swapped")),
    *(("rows.jsonl", kind) for kind in (*DAMAGE, "edited")),
    *(("about.json", kind) for kind in ("ones", "empty", "deleted")),
]


def damage(file, kind):
    if kind == "deleted":
        file.unlink()
        return
    whole = file.read_bytes()
    change = {**DAMAGE, "swapped": swapped, "edited": edited}[kind]
    file.write_bytes(change(whole))
    assert file.read_bytes() != whole


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_damage_is_named_before_data_are_read(halted, unread, name, kind):
    """No file is changed or replaced."""
    damage(halted / name, kind)
    before = content(halted)
    refused(lambda: wirelessfl.resume(halted), halted / name)
    assert content(halted) == before


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "kind"), [case for case in CASES if case[0] in (CHECKPOINT, "rows.jsonl")]
)
def test_damage_of_a_finished_run_is_named(finished, unread, name, kind):
    assert wirelessfl.resume(finished).rows
    damage(finished / name, kind)
    before = content(finished)
    refused(lambda: wirelessfl.resume(finished), finished / name)
    assert content(finished) == before


def test_a_finished_run_has_no_further_rows(finished):
    rows = finished / "rows.jsonl"
    rows.write_bytes(rows.read_bytes() + rows.read_bytes().splitlines(keepends=True)[-1])
    assert "but the run ended with" in refused(lambda: wirelessfl.resume(finished), rows)


def test_edited_settings_are_named_before_data_are_read(halted, unread):
    file = halted / "config.toml"
    file.write_text(file.read_text().replace("rounds = 5", "rounds = 6"))
    with pytest.raises(ConfigError, match=r"settings in config\.toml are not those"):
        wirelessfl.resume(halted)
    file.write_text("rounds = " + "[" * 100_000)
    with pytest.raises(ConfigError, match=r"config\.toml is not TOML"):
        wirelessfl.resume(halted)


def test_a_lost_start_is_said(halted, toy):
    """Without a checkpoint, a run starts again, and says so; logs show that there was progress."""
    (halted / CHECKPOINT).unlink()
    (halted / "rows.jsonl").unlink()
    refused(lambda: wirelessfl.resume(halted, data=toy), halted / CHECKPOINT)
    (halted / "clients-0.log").unlink()
    notes = []
    assert wirelessfl.resume(halted, data=toy, on_note=notes.append).rows[0]["round"] == 0
    assert notes[0] == f"{halted} has no checkpoint: the run starts from the beginning"


def test_drafts_of_a_killed_process_are_removed(halted, finished, toy, same, tmp_path):
    """Links at the names of drafts lead nowhere."""
    outside = tmp_path / "outside"
    outside.write_text("of the user")
    for name in (".0123456789abcdef.part", ".tmpAb3dE6", "clients-1.log"):
        (halted / name).symlink_to(outside)
    (halted / "own.part").write_text("of the user")
    same(wirelessfl.resume(halted, rounds=5, data=toy), wirelessfl.resume(finished))
    assert outside.read_text() == "of the user"
    assert {file.name for file in halted.iterdir()} - {"own.part"} == {
        file.name for file in finished.iterdir()
    }


def link(file, outside):
    file.rename(outside)
    file.symlink_to(outside)


def dangling_link(file, outside):
    file.unlink()
    file.symlink_to(outside)


def pipe(file, outside):
    file.unlink()
    os.mkfifo(file)


STORED = ("config.toml", "about.json", "rows.jsonl", CHECKPOINT, "clients-0.log", "clients.csv")


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("name", [*STORED, "partition.npz"])
@pytest.mark.parametrize("change", [link, dangling_link, pipe])
def test_only_regular_files_of_a_folder_are_opened(
    halted, toy, tmp_path, monkeypatch, name, change
):
    """Neither read nor written, by any command; nothing blocks."""
    if name == "clients.csv":  # a checkpoint that covers none of its bytes
        (halted / name).touch()
        file = ClientLogFile(halted / name, True, lambda: None)
        acts = [lambda: file.restore([0, 0, 0]), lambda: wirelessfl.read_client_log(halted)]
    elif name == "partition.npz":
        acts = [lambda: wirelessfl.runs.folder.given_files.read_partition(halted)]
    else:
        acts = [lambda: wirelessfl.resume(halted, data=toy)]
    if name in ("config.toml", "rows.jsonl", CHECKPOINT):
        acts.append(lambda: wirelessfl.load(halted))
    outside = tmp_path / "outside"
    change(halted / name, outside)
    before = outside.read_bytes() if outside.exists() else None
    for act in acts:
        with pytest.raises(ConfigError, match=r"a link|not a regular|no config\.toml") as caught:
            act()
        assert "\n" not in str(caught.value)
    assert (outside.read_bytes() if outside.exists() else None) == before


def with_checksums(folder, rows=None, settings=None, tensors=None, **state):
    """Change what a folder stores, and write the checksums anew."""
    file = folder / "checkpoint.safetensors"
    kept, entries = read_checkpoint(file)
    entries |= state
    if rows is not None:
        lines = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        lines[-1] |= rows
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        (folder / "rows.jsonl").write_bytes(text)
        entries |= {"rows_bytes": len(text), "rows_checksum": zlib.crc32(text)}
    if settings is not None:
        text = (folder / "config.toml").read_text()
        assert settings[0] in text
        text = text.replace(*settings)
        (folder / "config.toml").write_text(text)
        entries["fingerprint"] = fingerprint_of(tomllib.loads(text))
    for name, change in (tensors or {}).items():
        kept[name] = change(kept[name])
    write_checkpoint(file, {n: v for n, v in kept.items() if v is not None}, entries)


HOSTILE = [
    {"rows": {"accuracy": "x"}},
    {"rows": {"accuracy": 10**400}},
    {"rows": {"sim_seconds": None}},
    {"rows": {"joules": float("inf")}},
    {"rows": {"backhaul_mib": 10**100}},
    {"rows": {"silent": []}},
    {"settings": ("rounds = 5", "rounds = 1e400")},
    {"settings": ("rounds = 5", 'rounds = "x"')},
    {"settings": ("rounds = 5", "rounds = 99999999999999999999")},
    {"settings": ('name = "hfedavg"', "name = 3")},
    {"learners": 3},
    {"learners": [{}]},
    {"sim_seconds": "x"},
    {"sim_seconds": float("inf")},
    {"client_log": [1, "x", 2]},
    {"finished": None},
    {"tensors": {"server.cloud.params": lambda value: value.to(torch.int8)}},
    {"tensors": {"server.cloud.params": lambda value: value[:-1]}},
    {"tensors": {"server.cloud.params": lambda value: None}},
]


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("change", HOSTILE, ids=[*map(str, range(len(HOSTILE)))])
@pytest.mark.parametrize("done", [True, False])
def test_wrong_values_with_valid_checksums_are_one_line(stored, tmp_path, toy, change, done):
    """Nothing is written."""
    folder = shutil.copytree(stored / ("finished" if done else "halted"), tmp_path / "run")
    with_checksums(folder, **change)
    before = content(folder)
    acts = [lambda: wirelessfl.resume(folder, data=toy)]
    if not {"tensors", "learners"} & change.keys():
        acts.append(lambda: wirelessfl.load(folder))
    elif done:
        acts.append(lambda: wirelessfl.load(folder).params)
    for act in acts:
        with pytest.raises(ConfigError) as caught:
            act()
        assert "\n" not in str(caught.value)
    assert content(folder) == before


def test_a_fraction_of_a_round_is_one_line(halted, toy):
    with_checksums(halted, schedule={"rounds_done": -0.5})
    message = refused(lambda: wirelessfl.resume(halted, data=toy), halted / CHECKPOINT)
    assert f"{CHECKPOINT} is damaged" in message


REQUESTS = {
    "begun": lambda value: value.double() * float("nan"),
    "models.params": lambda value: value.double(),
    "ready.update": lambda value: value[None],
}


def test_wrong_tensors_of_requests_are_one_line(tmp_path, toy, halt_at):
    """Of an asynchronous run, whose models and updates are under way."""

    own = {"clients": 4, "rounds": 9, "local_steps": 1, "threads": 1, "checkpoint_seconds": 0}
    own |= {"requests": 4, "buffer": 1, "eval_every": 1, "out": tmp_path / "run"}
    config = Config.from_flags("fedast", **own)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(config, data=toy, on_row=halt_at(2))
    for name, change in REQUESTS.items():
        folder = shutil.copytree(tmp_path / "run", tmp_path / name)
        with_checksums(folder, tensors={f"task0.{name}": change})
        message = refused(lambda folder=folder: wirelessfl.resume(folder, data=toy), folder)
        assert f"{CHECKPOINT} is damaged" in message


def test_a_link_to_the_folder_of_a_run_is_followed(halted, finished, toy, same, tmp_path):
    (tmp_path / "elsewhere").symlink_to(halted)
    same(wirelessfl.resume(tmp_path / "elsewhere", data=toy), wirelessfl.load(finished))


def test_files_have_the_permissions_of_the_umask(config, toy):
    before = os.umask(0o027)
    try:
        result = wirelessfl.run(config(keep_best=True), data=toy)
    finally:
        os.umask(before)
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in result.directory.iterdir()}
    assert modes.keys() > {"best.safetensors", CHECKPOINT}
    assert set(modes.values()) == {"0o640"}


def test_a_record_is_checked_whenever_it_is_read(halted, toy, monkeypatch):
    """Damage after the checks at the start is noticed, too."""
    log = halted / "clients-0.log"
    monkeypatch.setattr(RunFolder, "check_logs", lambda *_, **__: damage(log, "ones"))
    assert "state of client" in refused(lambda: wirelessfl.resume(halted, data=toy), log)


def remove_all(folder):
    shutil.rmtree(folder)


def remove_settings(folder):
    (folder / "config.toml").unlink()


def remove_rows(folder):
    (folder / "rows.jsonl").unlink()


def add_a_row(folder):
    with (folder / "rows.jsonl").open("a") as file:
        file.write("{}\n")


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("change", [remove_all, remove_settings, remove_rows, add_a_row])
@pytest.mark.parametrize("last", [1, 3])
def test_a_run_ends_with_an_error_if_its_folder_changes(config, toy, change, last):
    """Also if this happens after its last row."""
    settings = config(rounds=3)

    def on_row(row):
        if row["round"] == last:
            change(Path(settings.run.out))

    message = refused(lambda: wirelessfl.run(settings, data=toy, on_row=on_row), settings.run.out)
    assert "removed, moved or changed while its run was training" in message
