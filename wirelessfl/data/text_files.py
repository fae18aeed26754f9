"""Labelled texts as they are published: GLUE, AG News, 20 Newsgroups, and copies of the hub's."""

from __future__ import annotations

import csv
import io
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirelessfl.errors import DataError


@dataclass(frozen=True)
class Texts:
    """Texts of one part of a data set.

    Args:
        texts: one a sample; those of a pair are joined by a line break.
        labels: of each, counted from 0.
        left_out: broken rows that the publisher is known for, and that were skipped.
    """

    texts: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    left_out: int = 0

    def add(self, columns: Sequence[str], label: int) -> None:
        """One sample."""
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
    """GLUE's format: a header, tabs between columns, quotes are ordinary characters.

    Args:
        path: the file.
        columns: names of the columns with text.
        label_column: name of the column with the label.
        labels: number of each label.
        advice: what to do about a damaged file.
        broken_share: share of rows that may have another number of columns than the header: texts
            with tabs and line breaks in them stand so in the published file.

    Raises:
        DataError: it cannot be read, a column is missing, a row is broken or a label unknown.
    """
    # Only \n ends a line here: texts hold other characters that splitlines would take for ends.
    lines = [line.removesuffix("\r") for line in read_text(path, advice).split("\n")]
    header = lines[0].removeprefix("\ufeff").split("\t")
    missing = [name for name in (*columns, label_column) if name not in header]
    if missing:
        raise DataError(
            f"{path}, line 1: the columns are {', '.join(header)}, and there is no "
            f"{' and no '.join(missing)}. {advice}"
        )
    places, label_place = [header.index(name) for name in columns], header.index(label_column)
    found, broken = Texts(), []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        row = line.split("\t")
        if len(row) != len(header):
            broken.append((number, len(row)))
            continue
        label = _label(row[label_place], labels, f"{path}, line {number}", advice)
        found.add([row[place] for place in places], label)
    if len(broken) > broken_share * (len(found.texts) + len(broken)):
        number, count = broken[0]
        others = f" ({len(broken)} such lines)" if len(broken) > 1 else ""
        raise DataError(
            f"{path}, line {number}: {count} columns, expected {len(header)}{others}. {advice}"
        )
    return Texts(found.texts, found.labels, len(broken))


def read_ag_csv(path: Path, labels: Mapping[str, int], advice: str) -> Texts:
    """AG News' format: class, title, description; quoted, quotes inside are doubled.

    Raises:
        DataError: it cannot be read, a row is broken or a label unknown.
    """
    found = Texts()
    # strict, so that a file that ends inside quotes is not taken for a whole one.
    rows = csv.reader(io.StringIO(read_text(path, advice), newline=""), strict=True)
    try:
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if not row or (rows.line_num == 1 and row[0] == "Class Index"):
                continue  # an empty line, or the header that some copies have
            if len(row) != 3:
                raise DataError(f"{where}: {len(row)} columns, expected 3. {advice}")
            found.add([" ".join(row[1:])], _label(row[0], labels, where, advice))
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}. {advice}") from error
    return found


def read_newsgroups(source: Path, groups: Mapping[str, int], advice: str) -> tuple[Texts, Texts]:
    """20news-bydate, train and test: a file a post in folders by group, or the archive of them.

    Posts are whole, with their headers, decoded as Latin-1, ordered by group and file name.

    Raises:
        DataError: a group is missing or unknown, a post is empty, or the archive is damaged.
    """
    posts = _archived(source, advice) if source.is_file() else _unpacked(source)
    parts = []
    for part in ("train", "test"):
        root, found = f"20news-bydate-{part}", Texts()
        found_posts = sorted((post for post in posts if post[0] == root), key=lambda post: post[:3])
        for _, group, name, content in found_posts:
            where = f"{source}: {root}/{group}/{name}"
            if not content:
                raise DataError(f"{where} is empty. {advice}")
            found.add([content.decode("latin-1")], _label(group, groups, where, advice))
        missing = groups.keys() - {group for _, group, _, _ in found_posts}
        if missing:
            raise DataError(
                f"{source}: {root} has no posts of {', '.join(sorted(missing))}. {advice}"
            )
        parts.append(found)
    return parts[0], parts[1]


Post = tuple[str, str, str, bytes]
"""Top folder, group, file name, content."""


def _unpacked(folder: Path) -> list[Post]:
    return [
        (*path.relative_to(folder).parts, path.read_bytes())  # type: ignore[misc]
        for path in newsgroup_files(folder)
    ]


def newsgroup_files(folder: Path) -> list[Path]:
    """The posts below ``folder``, sorted; hidden files are none."""
    found = folder.glob("20news-bydate-*/*/*")
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def _archived(archive: Path, advice: str) -> list[Post]:
    """Members are read by name, nothing is unpacked."""
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
    """Rows of jsonl or parquet files with columns of text and a label.

    Args:
        paths: the files, in order.
        columns: sets of text columns; the first that the rows have is taken.
        label_columns: likewise.
        labels: numbers of labels that may stand by name.
        classes: labels that stand by number are below this.
        advice: what to do about a damaged file.

    Raises:
        DataError: a file cannot be read, or a row has no text or no label.
    """
    found = Texts()
    for path in paths:
        rows = (
            _parquet_rows(path, advice) if path.suffix == ".parquet" else _json_rows(path, advice)
        )
        for where, row in rows:
            names = next((names for names in columns if all(n in row for n in names)), None)
            label_name = next((name for name in label_columns if name in row), None)
            if names is None or label_name is None:
                wanted = " or ".join("+".join(names) for names in columns)
                raise DataError(
                    f"{where}: the columns are {', '.join(map(str, row))}; expected {wanted}, and "
                    f"{' or '.join(label_columns)}. {advice}"
                )
            texts, label = [row[name] for name in names], row[label_name]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(f"{where}: {' and '.join(names)} must be text. {advice}")
            if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < classes:
                found.add(texts, label)
            else:
                found.add(texts, _label(label, labels, where, advice, f"0 to {classes - 1}"))
    return found


def _json_rows(path: Path, advice: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path, advice).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where} is not JSON: {error}. {advice}") from error
        if not isinstance(row, dict):
            raise DataError(f"{where} is not an object with columns. {advice}")
        yield where, row


def _parquet_rows(path: Path, advice: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataError(
            f"{path}: reading parquet needs pyarrow ({error}). Install it (pip install pyarrow), "
            "or save the rows as jsonl."
        ) from error
    try:
        rows = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        raise DataError(f"{path}: damaged parquet file ({error}). {advice}") from error
    return ((f"{path}, row {number}", row) for number, row in enumerate(rows))


def read_text(path: Path, advice: str) -> str:
    """The file as UTF-8 text, line ends as they are.

    Raises:
        DataError: it cannot be read, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {advice}") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 ({error.reason}). {advice}") from error


def _label(
    given: object, labels: Mapping[str, int], where: str, advice: str, numbers: str = ""
) -> int:
    if not isinstance(given, str) or given not in labels:
        expected = " or ".join(filter(None, (numbers, ", ".join(labels))))
        raise DataError(f"{where}: the label is {given!r}, expected {expected}. {advice}")
    return labels[given]
