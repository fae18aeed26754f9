"""Shakespeare: prediction of the next character of a role's text (Caldas et al., LEAF, 2018).

The data are read from plain text of plays, which has no published checksum: the structure is
checked, but no checksum, and nothing is downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import IntArray
from wirelessfl.base.errors import DataError
from wirelessfl.data.dataset import Dataset, Facts
from wirelessfl.data.files import find_place
from wirelessfl.data.labels import checked_number
from wirelessfl.data.text_files import read_text

NAME = "shakespeare"
LENGTH = 80
"""Number of characters of a sample; the next character is its label."""
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The alphabet of LEAF (ALL_LETTERS in its language_utils.py): a character's id is its index."""
FACTS = Facts((LENGTH,), classes=len(LETTERS), vocabulary=len(LETTERS))
OTHER = LETTERS.index(" ")
"""Id of all other characters: the id of a space."""
SHORTEST = 380
"""Minimum number of characters of a role; roles with shorter texts are omitted."""
TEST_STRIDE = 20

_PLAY = "input.txt"
_PLAY_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
_ADVICE = f"Download it again: it is published at {_PLAY_URL}"

Ids = NDArray[np.uint8]


@dataclass(frozen=True)
class RoleSamples:
    """Samples of one role: inputs [n, LENGTH] and labels [n], ids of characters."""

    inputs: Ids
    labels: Ids

    @classmethod
    def windows(cls, text: Ids) -> RoleSamples:
        """All windows of ``text`` [characters] with their labels, at stride 1."""
        if len(text) <= LENGTH:
            return cls(text[:0].reshape(0, LENGTH), text[:0])
        seen = np.lib.stride_tricks.sliding_window_view(text[:-1], LENGTH)
        return cls(seen, text[LENGTH:])

    def thinned(self, stride: int) -> RoleSamples:
        """Every ``stride``-th sample, starting with the first."""
        return RoleSamples(self.inputs[::stride], self.labels[::stride])


def load_shakespeare(
    data_dir: str | os.PathLike[str] | None = None, *, test_stride: int = TEST_STRIDE
) -> Dataset:
    """Load ids of 80 characters [n, 80], uint8, with the 81st as label; ``groups`` are the roles.

    The folder ``shakespeare`` in ``data_dir`` (or in WIRELESSFL_DATA, or in the cache) contains
    ``input.txt``: plays with blank lines between speeches. A speech starts with a line of the
    role's name and a colon; text without such a line belongs to the previous speech. Equal names
    are one role in all plays. A role's speeches are joined by line breaks, and roles with fewer
    than 380 characters are omitted. The first 80 % of a role's characters are its training part,
    the rest its test part. Samples are all windows of 81 characters within one part, so that
    training and test samples share no characters (a test part of at most 80 characters has no
    samples).

    Args:
        data_dir: folder that contains one folder per data set.
        test_stride: every ``test_stride``-th test sample of a role is kept; 1 keeps all.
            Neighbouring samples share 79 characters, and testing on all of them takes
            ``test_stride`` times as long.
    """
    test_stride = checked_number("test_stride", test_stride, 1)
    place = find_place(NAME, data_dir, remedy=f"Download it from {_PLAY_URL}.")
    if not (place.folder / _PLAY).is_file():
        raise DataError(
            f"{place.folder} (from {place.chosen_by}) has no {_PLAY}. Put it there: it is "
            f"published at {_PLAY_URL}"
        )
    train, test = _play(place.folder / _PLAY)
    test = {role: samples.thinned(test_stride) for role, samples in test.items()}
    train_inputs, train_labels = _joined(train.values())
    test_inputs, test_labels = _joined(test.values())
    return Dataset(
        NAME,
        torch.from_numpy(train_inputs),
        torch.from_numpy(train_labels),
        torch.from_numpy(test_inputs),
        torch.from_numpy(test_labels),
        classes=len(LETTERS),
        groups=np.repeat(np.arange(len(train)), [len(part.labels) for part in train.values()]),
        verification=f"structure of {_PLAY}, {len(train)} roles, one test sample of every "
        f"{test_stride}; not checksummed",
        vocabulary=len(LETTERS),
    )


def letter_ids(text: str) -> Ids:
    """The ids of the characters of ``text``, [characters]."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ids: Ids = _IDS[np.minimum(codes, len(_IDS) - 1)]
    return ids


def roles_of(text: str, where: str) -> dict[str, str]:
    """The text of each role, its speeches joined by line breaks; roles in order of appearance."""
    speeches: dict[str, list[str]] = {}
    role: str | None = None
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").removeprefix("\ufeff").strip()):
        first, _, rest = block.partition("\n")
        if first.endswith(":"):
            role, block = first[:-1].strip(), rest
        if role is None:
            raise DataError(
                f"{where} starts with {first[:40]!r}, which is not a role followed by a colon. "
                f"{_ADVICE}"
            )
        speeches.setdefault(role, []).extend([block] if block else [])
    return {role: "\n".join(texts) for role, texts in speeches.items()}


def _play(path: Path) -> tuple[dict[str, RoleSamples], dict[str, RoleSamples]]:
    """Training and test samples by role."""
    text = read_text(path, _ADVICE)
    train, test = {}, {}
    for role, lines in roles_of(text, f"{path}").items():
        if len(lines) < SHORTEST:
            continue
        ids, first = letter_ids(lines), len(lines) - len(lines) // 5
        train[role], test[role] = RoleSamples.windows(ids[:first]), RoleSamples.windows(ids[first:])
    if not train:
        raise DataError(f"{path} has no role with at least {SHORTEST} characters. {_ADVICE}")
    return train, test


def _joined(parts: Iterable[RoleSamples]) -> tuple[Ids, IntArray]:
    """Inputs [n, LENGTH] and labels [n] of all roles."""
    none = RoleSamples.windows(letter_ids(""))
    inputs, labels = zip(*((part.inputs, part.labels) for part in (none, *parts)), strict=True)
    return np.concatenate(inputs), np.concatenate(labels).astype(np.int64)


def _ids() -> Ids:
    """The id of each character code below 256; code 255, not a letter, represents larger codes."""
    ids = np.full(256, OTHER, dtype=np.uint8)
    ids[np.frombuffer(LETTERS.encode("latin-1"), dtype=np.uint8)] = np.arange(len(LETTERS))
    return ids


_IDS = _ids()
