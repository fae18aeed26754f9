"""Readers for published labelled texts: GLUE, AG News, 20 Newsgroups, and copies from the hub."""

from __future__ import annotations

import csv
import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import DataError
from wirelessfl.data.files import reading_parquet


@dataclass(frozen=True)
class Texts:
    """Texts of one part of a data set.

    Args:
        texts: one text per sample; the texts of a pair are joined by a line break.
        labels: label of each sample, from 0.
        left_out: number of skipped rows that are broken in the published files.
    """

    texts: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    left_out: int = 0

    def add(self, columns: Sequence[str], label: int) -> None:
        """Add one sample."""
        self.texts.append("\n".join(columns))
        self.labels.append(label)


def read_tsv(
    path: Path,
    columns: Sequence[str],
    label_column: str,
    labels: Mapping[str, int],
    advice: str,
    *,
    broken_share: float = 0.0,
) -> Texts:
    """Read GLUE's format: a header and tab-separated columns; quotes are ordinary characters.

    Args:
        path: the file.
        columns: names of the columns with text.
        label_column: name of the column with the label.
        labels: class index of each label.
        advice: remedy for a damaged file, for messages.
        broken_share: maximum fraction of rows whose number of columns differs from the header's.
            They are skipped: some published texts contain tabs and line breaks.
    """
    # Only \n ends a line: texts contain other characters that splitlines treats as line ends.
    lines = [line.removesuffix("\r") for line in read_text(path, advice).split("\n")]
    header = lines[0].removeprefix("\ufeff").split("\t")
    missing = [name for name in (*columns, label_column) if name not in header]
    if missing:
        raise DataError(
            f"{path}, line 1: the columns are {', '.join(header)}; missing: {', '.join(missing)}. "
            f"{advice}"
        )
    indices, label_index = [header.index(name) for name in columns], header.index(label_column)
    part, broken = Texts(), []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        row = line.split("\t")
        if len(row) != len(header):
            broken.append((number, len(row)))
            continue
        label = _label(row[label_index], labels, f"{path}, line {number}", advice)
        part.add([row[index] for index in indices], label)
    if len(broken) > broken_share * (len(part.texts) + len(broken)):
        number, count = broken[0]
        others = f" ({len(broken)} such lines)" if len(broken) > 1 else ""
        raise DataError(
            f"{path}, line {number}: {count} columns, expected {len(header)}{others}. {advice}"
        )
    return Texts(part.texts, part.labels, len(broken))


def read_ag_csv(path: Path, labels: Mapping[str, int], advice: str) -> Texts:
    """Read AG News' format: class, title, description; quoted, with inner quotes doubled."""
    part = Texts()
    # strict rejects a truncated file that ends inside quotes.
    rows = csv.reader(io.StringIO(read_text(path, advice), newline=""), strict=True)
    try:
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if not row or (rows.line_num == 1 and row[0] == "Class Index"):
                continue  # an empty line, or the header of some copies
            if len(row) != 3:
                raise DataError(f"{where}: {len(row)} columns, expected 3. {advice}")
            part.add([" ".join(row[1:])], _label(row[0], labels, where, advice))
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}. {advice}") from error
    return part


def read_newsgroups(archive: Path, groups: Mapping[str, int], advice: str) -> tuple[Texts, Texts]:
    """Read 20news-bydate, train and test, from the archive with one file per post.

    Posts include their headers, are decoded as Latin-1, and are sorted by group and file name.
    """
    posts = sorted(_archived(archive, advice), key=lambda post: post[:3])
    parts = []
    for part in ("train", "test"):
        root, texts, present = f"20news-bydate-{part}", Texts(), set()
        for _, group, name, content in (post for post in posts if post[0] == root):
            where = f"{archive}: {root}/{group}/{name}"
            if not content:
                raise DataError(f"{where} is empty. {advice}")
            texts.add([content.decode("latin-1")], _label(group, groups, where, advice))
            present.add(group)
        missing = groups.keys() - present
        if missing:
            raise DataError(
                f"{archive}: {root} has no posts of {', '.join(sorted(missing))}. {advice}"
            )
        parts.append(texts)
    return parts[0], parts[1]


def _archived(archive: Path, advice: str) -> list[tuple[str, str, str, bytes]]:
    """Top folder, group, file name and content of each post, read without unpacking."""
    posts = []
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                parts = member.name.removeprefix("./").split("/")
                content = tar.extractfile(member) if member.isfile() and len(parts) == 3 else None
                if content is not None and not parts[2].startswith("."):
                    posts.append((parts[0], parts[1], parts[2], content.read()))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{archive}: truncated or damaged tar.gz ({error}). {advice}") from error
    return posts


def read_hub_copy(
    paths: Sequence[Path],
    columns: Sequence[Sequence[str]],
    label_columns: Sequence[str],
    labels: Mapping[str, int],
    classes: int,
    advice: str,
) -> Texts:
    """Read parquet files with columns of text and a label.

    Args:
        paths: the files, in order.
        columns: alternative sets of text columns; the first that a row has is used.
        label_columns: alternative label columns; the first that a row has is used.
        labels: class index of each label that may be given by name.
        classes: number of classes; numeric labels must be below it.
        advice: remedy for a damaged file, for messages.
    """
    part = Texts()
    for path in paths:
        with reading_parquet(path, advice) as parquet:
            rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        for number, row in enumerate(rows):
            where = f"{path}, row {number}"
            names = next((names for names in columns if all(n in row for n in names)), None)
            label_name = next((name for name in label_columns if name in row), None)
            if names is None or label_name is None:
                expected = " or ".join("+".join(names) for names in columns)
                raise DataError(
                    f"{where}: the columns are {', '.join(map(str, row))}; expected {expected}, "
                    f"and {' or '.join(dict.fromkeys(label_columns))}. {advice}"
                )
            texts, label = [row[name] for name in names], row[label_name]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(f"{where}: {' or '.join(names)} is not a string. {advice}")
            if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < classes:
                part.add(texts, label)
            else:
                part.add(texts, _label(label, labels, where, advice, f"0 to {classes - 1}"))
    return part


def read_text(path: Path, advice: str) -> str:
    """Read a file as UTF-8 text, with its line ends unchanged."""
    try:
        content = path.read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {advice}") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 ({error.reason}). {advice}") from error


def _label(
    label: object, labels: Mapping[str, int], where: str, advice: str, numbers: str = ""
) -> int:
    if not isinstance(label, str) or label not in labels:
        expected = " or ".join(filter(None, (numbers, ", ".join(labels))))
        raise DataError(f"{where}: the label is {label!r}, expected {expected}. {advice}")
    return labels[label]
