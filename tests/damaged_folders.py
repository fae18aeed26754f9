"""Damaged and hostile run folders: every command ends with a result or one line, and stays inside.

``python -m tests.damaged_folders [CASES [SEED]]`` damages files of a few runs: by links, pipes,
flipped bits and absurd sizes, some by wrong values with valid checksums, and calls the commands for
stored runs. It prints each traceback, each message of several lines, and each change outside of the
folder, and how many calls there were.
"""

import contextlib
import copy
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import tomllib
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import tomli_w
import torch

import channels
import wirelessfl
from wirelessfl.base.stored_tensors import read_checkpoint, write_checkpoint
from wirelessfl.cli import main
from wirelessfl.runs.extension import extended
from wirelessfl.runs.folder.identity import fingerprint_of
from wirelessfl.runs.folder.run_folder import RunFolder

SMALL = {"clients": 4, "rounds": 3, "local_steps": 1, "threads": 1, "hidden": (4,), "chunk": 4}
RUNS = {
    "finished": ("fedavg", {"keep_best": True, "client_log": True, "target": 0.9}),
    "halted": ("scaffold", {"client_states": "disk", "client_log": True}),
    "cells": ("hfedavg", {"schedule": "buffered", "buffer": 1, "cells": 2}),
    "tasks": ("fedast", {"task": ("digits", "digits")}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid"}),
}
EXTENDED = "extended"
COMMANDS = {
    "show": ["show", "RUN"],
    "show --partition": ["show", "RUN", "--partition", "OUT/p.png"],
    "runs": ["runs", "."],
    "table": ["table", "RUN"],
    "compare": ["compare", "RUN", "good"],
    "plot": ["plot", "RUN", "good", "-o", "OUT/f.png"],
    "export": ["export", "RUN", "-o", "OUT/m.safetensors"],
    "export --best": ["export", "RUN", "--best", "-o", "OUT/m.safetensors"],
    "export rows": ["export", "RUN", "-o", "OUT/r.csv"],
    "price": ["price", "RUN", "--snr-db", "3"],
    "resume": ["resume", "RUN", "--quiet"],
    "resume --rounds": ["resume", "RUN", "--rounds", "6", "--quiet"],
}
VALUES = (
    *("x", "", None, True, -1, 0, 7, 1e308, -0.5, [], {}, [1, "x"], {"a": None}, "\x1b[31m"),
    *(2**63, 10**400, float("nan"), float("inf")),
)


class Blocked(BaseException):
    """A command has not ended."""


def make_runs():
    """Store small runs in the current folder; those but one are interrupted."""
    for name, (algorithm, flags) in RUNS.items():
        config = wirelessfl.Config.from_flags(
            algorithm, **SMALL | {"out": name, "checkpoint_seconds": 0} | flags
        )

        def halt(row, name=name):
            if name != "finished" and row["round"] >= 2:
                raise KeyboardInterrupt

        network = None
        if name == "halted":
            network = channels.section_vi_c(cells=1, clients=4, stream=channels.Stream(1))
            config = wirelessfl.Config.from_flags(
                algorithm,
                **{k: v for k, v in SMALL.items() if k != "clients"},
                **flags,
                out=name,
                checkpoint_seconds=0,
            )
        with contextlib.suppress(KeyboardInterrupt):
            wirelessfl.run(config, network=network, on_row=halt)
    shutil.copytree("finished", "good")
    shutil.copytree("halted", EXTENDED)  # and killed before its settings are in config.toml
    directory, config = RunFolder.open(Path(EXTENDED), trust=False)
    _, store = extended(directory, config, directory.load(), {"rounds": 5})
    store()


def places(value, path=()):
    """Paths of all values in nested lists and dicts."""
    yield path
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in entries:
            yield from places(one, (*path, key))


def put(value, path, new, remove):
    """A copy of nested lists and dicts with another value at a path, or without it."""
    if not path:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if remove:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def changed(value, draw):
    """A copy in which one value is another one, or is missing; and what has changed."""
    path, new = draw.choice([*places(value)][1:]), draw.choice(VALUES)
    remove = draw.random() < 0.15
    return put(value, path, new, remove), f"{path} {'removed' if remove else repr(new)[:20]}"


def bytes_of(file, draw, outside):
    """Damage the bytes or the kind of a file; return how."""
    kind = draw.choice(
        ["link", "dangling", "pipe", "cut", "empty", "flip", "flip", "flip", "huge", "folder"]
    )
    content = file.read_bytes()
    if kind in ("link", "dangling", "pipe", "folder"):
        file.unlink()
    if kind == "link":
        target = outside / f"{draw.randrange(10**9)}"
        target.write_bytes(content)
        file.symlink_to(target)
    elif kind == "dangling":
        file.symlink_to(outside / "missing")
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "cut":
        file.write_bytes(content[: draw.randrange(len(content) + 1)])
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "huge":
        with file.open("r+b") as opened:
            opened.truncate(1 << 43)
    elif content:
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
    return kind


def hostile(folder, draw):
    """Wrong values with valid checksums; return what has changed."""
    kind = draw.choice(["rows", "state", "state", "tensors", "config", "about", "arrays"])
    checkpoint = folder / "checkpoint.safetensors"
    tensors, state = read_checkpoint(checkpoint)
    if kind == "rows":
        file = folder / "rows.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        rows, what = changed(rows, draw)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        file.write_text(text)
        state |= {"rows_bytes": len(text.encode()), "rows_checksum": zlib.crc32(text.encode())}
    elif kind == "state":
        state, what = changed(state, draw)
    elif kind == "tensors":
        name = draw.choice(sorted(tensors))
        value = tensors.pop(name)
        what = f"{name} {draw.choice(['int8', 'empty', 'missing', 'nan', 'huge', 'more'])}"
        if not what.endswith("missing"):
            tensors[name] = {
                "int8": lambda v: v.to(torch.int8),
                "empty": lambda v: v.reshape(-1)[:0],
                "nan": lambda v: v.double() * float("nan"),
                "huge": lambda v: torch.full_like(v, 1) * 2**40,
                "more": lambda v: torch.cat([v.reshape(-1), v.reshape(-1)]),
            }[what.split()[-1]](value)
    elif kind == "config":
        file = folder / "config.toml"
        tables, what = changed(tomllib.loads(file.read_text()), draw)
        try:
            text = tomli_w.dumps(tables)
        except (TypeError, AttributeError):  # TOML has no null
            text = "rounds = 1e400"
        file.write_text(text)
        with contextlib.suppress(Exception):
            state["fingerprint"] = fingerprint_of(tomllib.loads(text))
    elif kind == "about":
        file = folder / "about.json"
        told, what = changed(json.loads(file.read_text()), draw)
        if isinstance(told, dict):
            told.pop("checksum", None)
        file.write_text(json.dumps(told))
    else:
        file = draw.choice(sorted(folder.glob("*.npz")))
        with np.load(file) as found:
            arrays = dict(found)
        name = draw.choice(sorted(arrays))
        new = draw.choice([np.zeros((2, 2)), np.array("x"), np.array(-1), np.arange(5), None])
        arrays = {**arrays, name: new} if new is not None else {**arrays, name: np.full(9, 2**60)}
        np.savez(file, **arrays)
        what = f"{file.name} {name} {new!r:.20}"
    if kind != "about":
        state.pop("tensors_checksum", None)
        write_checkpoint(checkpoint, tensors, state)
    return f"{kind}: {what}"


def call(words, said):
    """Exit status of a command, or its traceback."""

    def end(*_):
        raise Blocked

    signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            return main(words), ""
    except SystemExit as error:
        return error.code, ""
    except BaseException:
        return None, traceback.format_exc()
    finally:
        signal.alarm(0)


def content(folder):
    return {str(f): (f.read_bytes(), f.stat().st_mode) for f in folder.rglob("*") if f.is_file()}


def fuzz(cases, seed):
    """Damage folders and call commands; return the counts."""
    draw, counts = random.Random(seed), Counter()
    make_runs()
    outside = Path("outside")
    outside.mkdir()
    for number in range(cases):
        shutil.rmtree("work", ignore_errors=True)
        shutil.copytree(draw.choice(sorted((*RUNS, EXTENDED))), "work")
        if draw.random() < 0.5:
            how = hostile(Path("work"), draw)
        else:
            file = draw.choice(sorted(Path("work").iterdir()))
            how = f"{file.name} {bytes_of(file, draw, outside)}"
        before, good = content(outside), content(Path("good"))
        for name, words in COMMANDS.items():
            said = io.StringIO()
            shutil.rmtree("out", ignore_errors=True)
            command = [w.replace("RUN", "work").replace("OUT", "out") for w in words]
            status, error = call(command, said)
            counts[f"{name}: {status}"] += 1
            lines = [line for line in said.getvalue().splitlines() if "Error" in line]
            many = status == 2 and len(said.getvalue().splitlines()) > 1 + said.getvalue().count(
                "ote"
            )
            if error or many or len(lines) > 1:
                counts["WRONG"] += 1
                print(f"--- case {number}: {how}: {name}\n{error[-1200:]}{said.getvalue()[-600:]}")
            if content(outside) != before or content(Path("good")) != good:
                counts["CHANGED OUTSIDE"] += 1
                print(f"--- case {number}: {how}: {name} has changed something outside")
                before, good = content(outside), content(Path("good"))
    return counts


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        warnings.simplefilter("ignore")
        found = fuzz(*given, *(60, 0)[len(given) :])
        os.chdir(here)
    for key, value in sorted(found.items()):
        print(f"{value:6d} {key}")
    sys.exit(bool(found["WRONG"] or found["CHANGED OUTSIDE"]))
