"""Data sets of texts for language models: 20 Newsgroups, QNLI, QQP, SST-2 and AG News.

They are read in their published formats, or as parquet copies from the Hugging Face hub. There is
no single hash for these: structure and labels are checked, but there is no checksum.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from wirelessfl.base.errors import DataError
from wirelessfl.data.dataset import Dataset, Facts
from wirelessfl.data.files import Place, find_place, part_files
from wirelessfl.data.pretrained import HUB_MODEL
from wirelessfl.data.text_files import (
    Texts,
    read_ag_csv,
    read_hub_copy,
    read_newsgroups,
    read_tsv,
)
from wirelessfl.data.tokens import (
    FIRST_ID,
    PAD_ID,
    Encoded,
    TokenCache,
    Tokenizer,
    WordTokenizer,
    digest_of,
)

_PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "tsv": ("train.tsv", "dev.tsv"),
    "csv": ("train.csv", "test.csv"),
    "newsgroups": ("20news-bydate.tar.gz",),
}
"""Names of the published files by format: the training and the test file, or one archive."""

Kind = Literal["tsv", "csv", "newsgroups", "hub"]
TrainTestFiles = tuple[tuple[Path, ...], tuple[Path, ...]]


@dataclass(frozen=True)
class TextData:
    """A data set of labelled texts.

    Args:
        name: name of the data set and its folder.
        content: numbers of training and test texts, and what they are.
        kind: its published format.
        labels: labels in the published files; their order defines the class indices.
        columns: columns with text: one, or two for pairs of texts.
        label_column: column with the label.
        test: possible names of the test part in a copy from the hub.
        url: address of the publisher.
        broken_share: see ``read_tsv``.
        words: the published training texts have at least this many different words; 0 if unknown.
    """

    name: str
    content: str
    kind: Kind
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    label_column: str
    test: tuple[str, ...]
    url: str
    broken_share: float = 0.0
    words: int = 0

    def facts(self, *, tokenizer: str = HUB_MODEL, max_length: int = 128) -> Facts | None:
        """Shape, classes and vocabulary; None if the texts or a tokenizer's files determine them.

        Args:
            tokenizer: as for ``load``; known for words, if the texts have more than these.
            max_length: tokens per text.
        """
        words = WordTokenizer.of(tokenizer)
        if words is None or words.limit > self.words:
            return None
        return Facts((max_length,), len(self.labels), PAD_ID, FIRST_ID + words.limit)

    def load(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        tokenizer: str = HUB_MODEL,
        max_length: int = 128,
    ) -> Dataset:
        """Load the data set as token ids [n, max_length], cut or padded on the right.

        Tokens are stored in the folder ``tokens`` of the user's cache, so that the same files,
        tokenizer and length are tokenised only once.

        Args:
            data_dir: folder that contains one folder per data set; None as in ``load_dataset``.
            tokenizer: ``words`` or ``words:V``, see ``WordTokenizer``; a folder, or a name on the
                hub.
            max_length: tokens per text.
        """
        WordTokenizer.of(tokenizer)  # refuses wrong numbers of words before files are searched
        place = find_place(self.name, data_dir, remedy=f"Download them from {self.url}.")
        kind, files = self._find(place)
        encoder = Tokenizer.find(tokenizer)
        content = digest_of([path for part in files for path in part], place.folder)
        cache = TokenCache(self.name, (kind, content, encoder.digest, max_length), place.folder)
        encoded = cache.read()
        if encoded is None:
            train, test = self._read(kind, files)
            tokens = encoder.tokens(train.texts, test.texts, max_length=max_length)
            train_ids, test_ids = tokens.parts
            encoded = Encoded(
                {
                    "train_inputs": train_ids,
                    "train_labels": train_ids.new_tensor(train.labels),
                    "test_inputs": test_ids,
                    "test_labels": test_ids.new_tensor(test.labels),
                },
                tokens.pad_id,
                tokens.vocabulary,
                train.left_out + test.left_out,
                tokens.words,
            )
            cache.write(encoded)
        broken = f"; {encoded.left_out} broken rows skipped" if encoded.left_out else ""
        return Dataset(
            self.name,
            encoded.tensors["train_inputs"],
            encoded.tensors["train_labels"],
            encoded.tensors["test_inputs"],
            encoded.tensors["test_labels"],
            classes=len(self.labels),
            verification=f"structure and labels{broken}; not checksummed",
            pad_id=encoded.pad_id,
            vocabulary=encoded.vocabulary,
            words=encoded.words,
        )

    @property
    def advice(self) -> str:
        """Remedy for a damaged file, for messages."""
        return f"Download it again: it is published at {self.url}"

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def _find(self, place: Place) -> tuple[Kind, TrainTestFiles]:
        """Find the format of the files, and the training and test files."""
        folder, names = place.folder, _PUBLISHED[self.kind]
        published = [folder / name for name in names if (folder / name).is_file()]
        if len(published) == len(names):
            return self.kind, (tuple(published[:1]), tuple(published[1:]))
        train = part_files(folder, "train", self.advice)
        tests = (part_files(folder, part, self.advice) for part in self.test)
        test = next(filter(None, tests), ())
        if train and test:
            return "hub", (train, test)
        part = published or train or test
        if part:
            if published:
                lacks = next(name for name in names if not (folder / name).is_file())
            else:
                lacks = " or ".join(
                    f"{name}.parquet" for name in (self.test if train else ("train",))
                )
            raise DataError(f"{folder} has {part[0].name} but no {lacks}. {self.advice}")
        raise DataError(
            f"{folder} (from {place.chosen_by}) has no {' and '.join(names)}, nor train.parquet "
            f"with a test part. Put the files there: they are published at {self.url}"
        )

    def _read(self, kind: Kind, files: TrainTestFiles) -> tuple[Texts, Texts]:
        """Read the training and test texts."""
        if kind == "newsgroups":
            return read_newsgroups(files[0][0], self._numbers, self.advice)
        train, test = self._read_part(kind, files[0]), self._read_part(kind, files[1])
        for paths, part in zip(files, (train, test), strict=True):
            if not part.texts:
                raise DataError(f"{paths[0]} has no rows. {self.advice}")
        return train, test

    def _read_part(self, kind: Kind, paths: tuple[Path, ...]) -> Texts:
        if kind == "tsv":
            return read_tsv(
                paths[0],
                self.columns,
                self.label_column,
                self._numbers,
                self.advice,
                broken_share=self.broken_share,
            )
        if kind == "csv":
            return read_ag_csv(paths[0], self._numbers, self.advice)
        pair = ("text1", "text2") if len(self.columns) == 2 else ("text",)
        # In copies, numeric labels start at 0 even if the publisher's start at 1.
        names = {} if self.labels[0].isdigit() else self._numbers
        label_columns = ("label", self.label_column)
        return read_hub_copy(
            paths, (self.columns, pair), label_columns, names, len(self.labels), self.advice
        )


_GLUE = "https://gluebenchmark.com/tasks"

TEXT_DATA = (
    TextData(
        name="20newsgroups",
        content="11,314 + 7,532 posts by group, 20 classes",
        kind="newsgroups",
        labels=(
            "alt.atheism",
            "comp.graphics",
            "comp.os.ms-windows.misc",
            "comp.sys.ibm.pc.hardware",
            "comp.sys.mac.hardware",
            "comp.windows.x",
            "misc.forsale",
            "rec.autos",
            "rec.motorcycles",
            "rec.sport.baseball",
            "rec.sport.hockey",
            "sci.crypt",
            "sci.electronics",
            "sci.med",
            "sci.space",
            "soc.religion.christian",
            "talk.politics.guns",
            "talk.politics.mideast",
            "talk.politics.misc",
            "talk.religion.misc",
        ),
        columns=("text",),
        label_column="label",
        test=("test",),
        url="http://qwone.com/~jason/20Newsgroups/",
        words=100_000,
    ),
    TextData(
        name="qnli",
        content="104,743 + 5,463 questions with sentences, 2 classes",
        kind="tsv",
        labels=("entailment", "not_entailment"),
        columns=("question", "sentence"),
        label_column="label",
        test=("dev", "validation"),
        url=_GLUE,
    ),
    TextData(
        name="qqp",
        content="363,846 + 40,430 pairs of questions, 2 classes",
        kind="tsv",
        labels=("0", "1"),
        columns=("question1", "question2"),
        label_column="is_duplicate",
        test=("dev", "validation"),
        url=_GLUE,
        broken_share=1e-3,  # tabs in texts break a few dozen of the published 360,000 rows
    ),
    TextData(
        name="sst2",
        content="67,349 + 872 film reviews, 2 classes",
        kind="tsv",
        labels=("0", "1"),
        columns=("sentence",),
        label_column="label",
        test=("dev", "validation"),
        url=_GLUE,
        words=13_000,
    ),
    TextData(
        name="ag-news",
        content="120,000 + 7,600 news by topic, 4 classes",
        kind="csv",
        labels=("1", "2", "3", "4"),
        columns=("text",),
        label_column="label",
        test=("test",),
        url="https://github.com/mhjabreel/CharCnn_Keras/tree/master/data/ag_news_csv",
    ),
)
