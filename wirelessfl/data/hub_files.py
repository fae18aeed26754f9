"""Files of copies from the Hugging Face hub: numbered files, and parquet through pyarrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from channels.arrays import IntArray
from wirelessfl.data.decoding import BLOCK
from wirelessfl.errors import DataError

_IMAGE_COLUMNS = ("img", "image")


def part_files(folder: Path, part: str, suffix: str, advice: str) -> tuple[Path, ...]:
    """The files of one part of a data set, in order; empty if there are none.

    Args:
        folder: their folder.
        part: name of the part, such as ``train``.
        suffix: suffix of ``train.SUFFIX``, or of numbered files ``train-00000-of-00002.SUFFIX``,
            which may have a hash before the suffix.
        advice: remedy for missing files, for messages.

    Raises:
        DataError: some of the numbered files are missing, or one appears twice.
    """
    whole = folder / f"{part}.{suffix}"
    if whole.is_file():
        return (whole,)
    form = re.compile(rf"{re.escape(part)}-(\d+)-of-(\d+)(-[0-9a-f]+)?\.{suffix}")
    named = [(form.fullmatch(path.name), path) for path in folder.glob(f"{part}-*.{suffix}")]
    found = sorted((int(name[2]), int(name[1]), path) for name, path in named if name)
    count = found[0][0] if found else 0
    if [(total, number) for total, number, _ in found] != [(count, i) for i in range(count)]:
        there = ", ".join(path.name for _, _, path in found)
        raise DataError(
            f"{folder} has {there}, but {part} needs each of its {count} numbered files once. "
            f"{advice}"
        )
    return tuple(path for _, _, path in found)


@contextmanager
def reading_parquet(path: Path, advice: str, alternative: str = "") -> Iterator[Any]:
    """Yield pyarrow's module ``parquet``; its errors inside the block name the file.

    Args:
        path: the file that is read in the block.
        advice: remedy for a damaged file, for messages.
        alternative: what to do instead of installing pyarrow, for messages.

    Raises:
        DataError: pyarrow is not installed, or the file is damaged.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataError(
            f"{path}: reading parquet needs pyarrow ({error}). Install it (pip install pyarrow)"
            f"{alternative}."
        ) from error
    try:
        yield parquet
    except DataError:
        raise
    # Damaged names and repeated columns are ValueError and KeyError.
    except (ArrowException, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())  # some of pyarrow's messages have several lines
        raise DataError(f"{path}: damaged parquet file ({reason}). {advice}") from error


class ImageFile(NamedTuple):
    """A parquet file of images with labels.

    Args:
        path: the file.
        column: name of the column with the images.
        labels: [rows], integers of any width.
    """

    path: Path
    column: str
    labels: IntArray

    @classmethod
    def open(cls, path: Path, label_columns: Sequence[str], advice: str) -> ImageFile:
        """Find the columns of a file, and read its labels.

        Args:
            path: the file.
            label_columns: possible names of the label column; the first that the file has is used.
            advice: remedy for a wrong file, for messages.

        Raises:
            DataError: the file is damaged, a column is missing or has a wrong type, or a label is
                null.
        """
        with reading_parquet(path, advice) as parquet, parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            image = next((name for name in _IMAGE_COLUMNS if name in schema.names), None)
            label = next((name for name in label_columns if name in schema.names), None)
            if image is None or label is None:
                raise DataError(
                    f"{path}: the columns are {', '.join(schema.names)}; expected "
                    f"{' or '.join(_IMAGE_COLUMNS)}, and {' or '.join(label_columns)}. {advice}"
                )
            kind = schema.field(image).type
            if not _has_bytes(kind):
                raise DataError(
                    f"{path}: column {image} has type {kind}, expected bytes or a struct with a "
                    f"field bytes. {advice}"
                )
            column = file.read(columns=[label]).column(label)
        return cls(path, image, _labels(column, label, path, advice))

    def blocks(self, advice: str) -> Iterator[list[bytes]]:
        """The bytes of the images, in blocks.

        Raises:
            DataError: the file is damaged, or an image has no bytes.
        """
        row = 0
        with (
            reading_parquet(self.path, advice) as parquet,
            parquet.ParquetFile(self.path) as file,
        ):
            for batch in file.iter_batches(batch_size=BLOCK, columns=[self.column]):
                values = batch.column(0).to_pylist()
                yield [
                    _content(value, f"{self.path}, row {number}", advice)
                    for number, value in enumerate(values, start=row)
                ]
                row += len(values)


def _has_bytes(kind: Any) -> bool:
    """Whether a type of pyarrow is bytes or a struct with a field ``bytes``."""
    from pyarrow import types

    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        kind = kind[kind.get_field_index("bytes")].type
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _labels(column: Any, name: str, path: Path, advice: str) -> IntArray:
    """The labels [rows] in a column of pyarrow.

    Raises:
        DataError: a label is null or not an integer.
    """
    from pyarrow import types

    if not types.is_integer(column.type):
        first = f", e.g. {column[0].as_py()!r} in row 0" if len(column) else ""
        raise DataError(
            f"{path}: column {name} has type {column.type}{first}; labels must be integers >= 0. "
            f"{advice}"
        )
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise DataError(f"{path}, row {row}: the label is null. {advice}")
    labels: IntArray = column.to_numpy()
    return labels


def _content(value: Any, where: str, advice: str) -> bytes:
    """The bytes in a value of the image column: bytes, or a dict with bytes."""
    content: bytes | None = value.get("bytes") if isinstance(value, dict) else value
    if content is None:
        path = value.get("path") if isinstance(value, dict) else None
        instead = "" if path is None else f", only the path {path!r}"
        raise DataError(f"{where}: the image has no bytes{instead}. {advice}")
    return content
