"""Texts as token ids, padded on the right: tokenizers, and a cache of token ids."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from wirelessfl.base.errors import ConfigError
from wirelessfl.data import files
from wirelessfl.data.pretrained import language_package, load_pretrained, pretrained_folder


class TokenIds(NamedTuple):
    """Tokenised texts.

    Args:
        parts: ids [texts, length] int64 of each part, e.g. of the training and the test texts.
        pad_id: id of the padding token.
        vocabulary: number of token ids, which start at 0.
        words: the word of each id, "" for ids that are not words; None if tokens are not words.
    """

    parts: list[torch.Tensor]
    pad_id: int
    vocabulary: int
    words: tuple[str, ...] | None = None


def padded(rows: Iterable[Sequence[int]], texts: int, length: int, pad_id: int) -> torch.Tensor:
    """Ids [texts, length] int64 of ``texts`` rows of at most ``length`` ids each."""
    ids = np.full((texts, length), pad_id, dtype=np.int64)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokens
    return torch.from_numpy(ids)


WORDS = "words"
"""Name of the tokenizer in the settings, alone or followed by a colon and the number of words."""
DEFAULT_LIMIT = 10_000
PAD_ID, UNKNOWN_ID, FIRST_ID = 0, 1, 2
"""Ids of the padding, of unknown words, and of the most frequent word."""
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
"""A word of a lower-cased text: letters and digits, also with apostrophes between them."""


@dataclass(frozen=True)
class WordTokenizer:
    """The most frequent words of the training texts; other words are unknown.

    Words are lower-cased and match ``WORD``. The most frequent word has the id 2; equally frequent
    words are in alphabetical order, so the ids do not depend on the order of the texts.

    Args:
        limit: maximum number V of words in the vocabulary, >= 1.
    """

    limit: int = DEFAULT_LIMIT

    @classmethod
    def of(cls, name: str) -> WordTokenizer | None:
        """The tokenizer called ``words`` or ``words:V``; None for any other name."""
        kind, colon, limit = name.partition(":")
        if kind != WORDS:
            return None
        if not colon:
            return cls()
        if not re.fullmatch("[0-9]+", limit) or int(limit) < 1:
            raise ConfigError(
                f"tokenizer is {name!r}: give the number of words after the colon, an integer >= "
                f"1, e.g. {WORDS}:5000, or only {WORDS} for {DEFAULT_LIMIT:,}."
            )
        return cls(int(limit))

    @property
    def digest(self) -> str:
        """SHA-256 of the rule; with equal texts, equal digests give equal tokens."""
        return hashlib.sha256(f"{WORDS}\0{WORD.pattern}\0{self.limit}".encode()).hexdigest()

    def tokens(self, train: Sequence[str], *others: Sequence[str], max_length: int) -> TokenIds:
        """Tokenise parts of a data set, of which only ``train`` determines the vocabulary.

        The vocabulary counts all words of the training texts, also those after ``max_length``.

        Args:
            train: training texts.
            others: other parts, e.g. the test texts.
            max_length: number of words to which texts are cut or padded.
        """
        numbers = self._numbers(train)

        def ids(texts: Sequence[str]) -> torch.Tensor:
            rows = (
                [numbers.get(word, UNKNOWN_ID) for word in islice(_words(text), max_length)]
                for text in texts
            )
            return padded(rows, len(texts), max_length, PAD_ID)

        words = ("",) * FIRST_ID + tuple(numbers)
        return TokenIds([ids(part) for part in (train, *others)], PAD_ID, len(words), words)

    def _numbers(self, texts: Sequence[str]) -> Mapping[str, int]:
        """The id of each word of the vocabulary."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(_words(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))[: self.limit]
        return {word: number for number, word in enumerate(ranked, start=FIRST_ID)}


def _words(text: str) -> Iterator[str]:
    """The words of a text in order, lower-cased."""
    return (match.group() for match in WORD.finditer(text.lower()))


_FORMAT = 3  # version of the cached files; a new number makes older files invalid
_AT_ONCE = 10_000  # texts tokenised at once
_NEEDS = [("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "tokenizer.model")]
_PATTERNS = ["tokenizer*", "vocab.*", "merges.txt", "*tokens*.json", "config.json"]
_PARTS = ("train_inputs", "train_labels", "test_inputs", "test_labels")
_NUMBERS = ("pad_id", "vocabulary", "left_out")


@dataclass(frozen=True)
class Tokenizer:
    """A pretrained tokenizer, whose files are loaded when texts are tokenised.

    >>> from wirelessfl.data import Tokenizer
    >>> tokens = Tokenizer.find("words").tokens(["a fine day", "a day"], max_length=3)
    >>> tokens.parts[0].tolist(), tokens.vocabulary
    ([[2, 4, 3], [2, 3, 0]], 5)

    Args:
        name: name in the settings.
        folder: folder of its files.
    """

    name: str
    folder: Path

    @classmethod
    def find(cls, name: str) -> Tokenizer | WordTokenizer:
        """Find the tokenizer in a folder or on the hub; ``words`` and ``words:V`` need no files."""
        words = WordTokenizer.of(name)
        return words or cls(name, pretrained_folder("tokenizer", name, _NEEDS, _PATTERNS))

    @property
    def digest(self) -> str:
        """SHA-256 of its files; tokenizers with equal digests give equal tokens."""
        paths = {path for pattern in _PATTERNS for path in self.folder.glob(pattern)}
        return digest_of(sorted(path for path in paths if path.is_file()), self.folder)

    def tokens(self, *parts: Sequence[str], max_length: int) -> TokenIds:
        """Tokenise parts of a data set, cut or padded to ``max_length`` tokens."""
        package = language_package("transformers", f"tokenizer {self.name!r}")
        load = package.AutoTokenizer.from_pretrained
        tokenizer = load_pretrained("tokenizer", self.name, load, self.folder)
        pad_id = tokenizer.pad_token_id
        pad_id = tokenizer.eos_token_id if pad_id is None else pad_id
        if pad_id is None:
            raise ConfigError(
                f"tokenizer is {self.name!r}, which has neither pad_token nor eos_token, so texts "
                "cannot be padded: set one of them and save the tokenizer again."
            )
        tokenizer.truncation_side = "right"

        def rows(texts: Sequence[str]) -> Iterator[Sequence[int]]:
            for first in range(0, len(texts), _AT_ONCE):
                batch = list(texts[first : first + _AT_ONCE])
                yield from tokenizer(batch, truncation=True, max_length=max_length)["input_ids"]

        ids = [padded(rows(texts), len(texts), max_length, pad_id) for texts in parts]
        # Not the number of tokens: the ids of some tokenizers have gaps.
        vocabulary = max(tokenizer.get_vocab().values()) + 1
        return TokenIds(ids, int(pad_id), int(vocabulary))


@dataclass(frozen=True)
class Encoded:
    """A data set of texts as tensors.

    Args:
        tensors: ``train_inputs``, ``train_labels``, ``test_inputs``, ``test_labels``, int64.
        pad_id: id of the padding token.
        vocabulary: number of token ids, which start at 0.
        left_out: number of skipped rows.
        words: the word of each token id, see ``TokenIds``.
    """

    tensors: dict[str, torch.Tensor]
    pad_id: int
    vocabulary: int
    left_out: int
    words: tuple[str, ...] | None


def digest_of(paths: Sequence[Path], root: Path) -> str:
    """SHA-256 of files, from their paths relative to ``root`` and their contents."""
    total = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return total.hexdigest()


@dataclass(frozen=True)
class TokenCache:
    """One file per data set, tokenizer and length, in the user's cache or else next to the data.

    Args:
        name: name of the data set.
        key: everything that determines the content.
        beside: the data set's folder.
    """

    name: str
    key: tuple[str | int, ...]
    beside: Path

    @property
    def places(self) -> tuple[Path, Path]:
        """Possible paths of the file."""
        key = hashlib.sha256(json.dumps([_FORMAT, *self.key]).encode()).hexdigest()[:32]
        name = f"{self.name}-{key}.safetensors"
        return files.cache_folder() / "tokens" / name, self.beside / ".tokens" / name

    def read(self) -> Encoded | None:
        """Read the cached tokens; None if there are none or they are damaged."""
        for path in self.places:
            with suppress(OSError, SafetensorError, KeyError, ValueError, TypeError):
                return _read(path)
        return None

    def write(self, encoded: Encoded) -> None:
        """Write the tokens atomically to the first writable path."""
        from safetensors.torch import save_file  # loads PyTorch

        kept = {name: encoded.tensors[name].to(torch.int32) for name in _PARTS}
        numbers = {name: getattr(encoded, name) for name in _NUMBERS}
        note = {**numbers, "words": encoded.words, "crc": _crc(kept)}
        for path in self.places:
            draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                save_file(kept, draft, metadata={"note": json.dumps(note)})
                os.replace(draft, path)
            except (OSError, SafetensorError):  # not writable, or the disk is full
                continue
            else:
                return
            finally:
                with suppress(OSError):
                    draft.unlink()


def _read(path: Path) -> Encoded:
    with safe_open(path, framework="pt") as file:
        note = json.loads(file.metadata()["note"])
        kept = {name: file.get_tensor(name) for name in _PARTS}
    if _crc(kept) != note["crc"]:
        raise ValueError("the checksum of the cached tokens is wrong")
    tensors = {name: value.to(torch.int64) for name, value in kept.items()}
    words = None if note["words"] is None else tuple(note["words"])
    return Encoded(tensors, **{name: int(note[name]) for name in _NUMBERS}, words=words)


def _crc(tensors: dict[str, torch.Tensor]) -> int:
    total = 0
    for name in _PARTS:
        total = zlib.crc32(tensors[name].numpy().tobytes(), total)
    return total
