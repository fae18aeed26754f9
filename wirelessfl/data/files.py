"""Files of data sets: where they are, verification against published hashes, download, parquet."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wirelessfl.base.errors import DataError
from wirelessfl.base.import_paths import expanded, has_separator, is_import_path, short

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

ENVIRONMENT = "WIRELESSFL_DATA"
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Place:
    """The folder of one data set, and the setting that chose it."""

    dataset: str
    folder: Path
    chosen_by: Literal["--data-dir", "WIRELESSFL_DATA", "cache"]


@dataclass(frozen=True)
class Published:
    """A published file.

    Args:
        name: name of the file, e.g. ``train-images-idx3-ubyte.gz``.
        base_url: the address without the name.
        digest: ``algorithm:hex``, hash of the decompressed content, or of the file itself for an
            archive (``.tar.gz``).
    """

    name: str
    base_url: str
    digest: str

    @property
    def url(self) -> str:
        """Download address."""
        return f"{self.base_url.rstrip('/')}/{self.name}"

    @property
    def is_archive(self) -> bool:
        """Whether the file is an archive, whose digest is that of the file itself."""
        return self.name.endswith(".tar.gz")

    @property
    def local_names(self) -> tuple[str, ...]:
        """Possible names of the local file: gzipped, and decompressed unless it is an archive."""
        return (self.name,) if self.is_archive else (self.name, self.name.removesuffix(".gz"))


def is_folder_path(dataset: str) -> bool:
    """Whether the setting ``dataset`` is the path of a folder: it contains a path separator."""
    return has_separator(dataset) and not is_import_path(dataset)


def dataset_title(dataset: str) -> str:
    """The name of a data set in titles; of a path only the last part."""
    return Path(dataset).resolve().name or dataset if is_folder_path(dataset) else short(dataset)


def cache_folder() -> Path:
    """The user's cache of downloaded data sets."""
    import pooch

    return Path(pooch.os_cache("wirelessfl"))


def find_place(
    dataset: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    remedy: str = "Omit --data-dir to download them.",
) -> Place:
    """Find the folder of ``dataset``: in ``data_dir``, in WIRELESSFL_DATA, or in the cache.

    WIRELESSFL_DATA may contain only some data sets; the others are read from the cache.

    Args:
        dataset: name of the data set's folder.
        data_dir: its parent folder.
        remedy: what to do if ``data_dir`` lacks the folder, for the message.
    """
    if data_dir is not None:
        folder = expanded(data_dir) / dataset
        if not folder.is_dir():
            raise DataError(
                f"{folder} is not a folder: --data-dir {data_dir} needs a folder {dataset!r} with "
                f"the files of that data set. {remedy}"
            )
        return Place(dataset, folder, "--data-dir")
    root = environment_folder()
    if root is not None and (root / dataset).is_dir():
        return Place(dataset, root / dataset, "WIRELESSFL_DATA")
    return Place(dataset, cache_folder() / dataset, "cache")


def environment_folder() -> Path | None:
    """The folder that WIRELESSFL_DATA names; None if it is not set."""
    root = os.environ.get(ENVIRONMENT)
    if root and not expanded(root).is_dir():
        raise DataError(
            f"{ENVIRONMENT} is {root!r}, which is not an existing folder. Correct it, or unset it "
            "to download data sets to the cache."
        )
    return expanded(root) if root else None


def read_verified(file: Published, place: Place) -> bytes:
    """Read and verify ``file`` from ``place``; returns its content, decompressed except archives.

    A missing file is downloaded only to the cache, not to a folder that the user chose.
    """
    for name in file.local_names:
        path = place.folder / name
        if path.is_file():
            return _verified_content(path, file, f"{path}", _advice(file, place, path))
    if place.chosen_by == "cache":
        return download(file, place)
    raise DataError(
        f"{place.folder} (from {place.chosen_by}) has no {' or '.join(file.local_names)}. Put it "
        f"there (published at {file.url}), or omit {place.chosen_by} to download it."
    )


def download(file: Published, place: Place, console: Console | None = None) -> bytes:
    """Download ``file`` to ``place``; returns its verified content like ``read_verified``.

    The file is stored under its name only when it is complete and verified.

    Args:
        file: the file to download.
        place: destination.
        console: console for a progress bar, if it is a terminal; None for standard error.
    """
    import pooch
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from wirelessfl.base.terminal import Terminal

    title = f"{place.dataset}/{file.name}"
    target = place.folder / file.name
    # A unique name, so that two processes that download at once write to different files.
    partial = place.folder / f".{file.name}.{secrets.token_hex(4)}.part"
    console = console or Terminal(stderr=True)
    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        with (
            ExitStack() as opened,
            Progress(*columns, console=console, disable=not console.is_terminal) as progress,
        ):

            def close_later(response: Any, **_: object) -> None:
                opened.callback(response.close)  # pooch leaves it open if a transfer fails

            transfer = pooch.HTTPDownloader(
                progressbar=_Bar(progress),
                chunk_size=_CHUNK_BYTES,
                hooks={"response": close_later},
            )
            transfer(file.url, str(partial), None)
        content = _verified_content(
            partial,
            file,
            f"{title} as downloaded from {file.url}",
            f"Try again later, or put a correct copy into {place.folder} or into a folder "
            f"{place.dataset!r} in --data-dir.",
        )
        os.replace(partial, target)
    except OSError as error:  # the errors of requests are OSErrors too
        raise DataError(
            f"{title} cannot be downloaded from {file.url}: {type(error).__name__}: {error}. "
            f"Try again, or get it elsewhere and put it into {place.folder} or into a folder "
            f"{place.dataset!r} in --data-dir. Expected {file.digest}."
        ) from error
    finally:  # also on Ctrl-C
        with suppress(OSError):
            partial.unlink()
    return content


class _Bar:
    """A rich progress bar with the interface that pooch requires."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("download", total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        pass  # the surrounding Progress closes itself


def _advice(file: Published, place: Place, path: Path) -> str:
    if place.chosen_by == "cache":
        return f"Delete {path} to download it again, or point --data-dir elsewhere."
    return f"Replace it with the file at {file.url}, or point {place.chosen_by} elsewhere."


def _verified_content(path: Path, file: Published, title: str, advice: str) -> bytes:
    algorithm, expected = file.digest.split(":")
    hash_name = {"sha256": "SHA-256", "md5": "MD5"}[algorithm]
    content = path.read_bytes()
    # Check the first bytes, not the name: servers and browsers decompress without renaming.
    if not file.is_archive and content.startswith(b"\x1f\x8b"):
        try:
            # The last bytes are the decompressed size. A buffer of this size is not copied.
            size = min(int.from_bytes(content[-4:], "little"), 8 * len(content))
            content = zlib.decompress(content, zlib.MAX_WBITS | 16, size)
        except zlib.error as error:
            raise DataError(
                f"{title}: truncated or damaged gzip data ({error}), expected content with "
                f"{hash_name} {expected}. {advice}"
            ) from error
    digest = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if digest != expected:
        raise DataError(f"{title}: content has {hash_name} {digest}, expected {expected}. {advice}")
    return content


def part_files(folder: Path, part: str, advice: str) -> tuple[Path, ...]:
    """The parquet files of one part of a copy from the hub, in order; empty if there are none.

    Args:
        folder: their folder.
        part: name of the part, such as ``train``, of the file ``train.parquet`` or of numbered
            files ``train-00000-of-00002.parquet``, which may have a hash before the suffix.
        advice: remedy for missing files, for messages.
    """
    whole = folder / f"{part}.parquet"
    if whole.is_file():
        return (whole,)
    form = re.compile(rf"{re.escape(part)}-(\d+)-of-(\d+)(-[0-9a-f]+)?\.parquet")
    named = [(form.fullmatch(path.name), path) for path in folder.glob(f"{part}-*.parquet")]
    numbered = sorted((int(name[2]), int(name[1]), path) for name, path in named if name)
    count = numbered[0][0] if numbered else 0
    if [(total, number) for total, number, _ in numbered] != [(count, i) for i in range(count)]:
        present = ", ".join(path.name for _, _, path in numbered)
        raise DataError(
            f"{folder} has {present}, but {part} needs each of its {count} numbered files once. "
            f"{advice}"
        )
    return tuple(path for _, _, path in numbered)


@contextmanager
def reading_parquet(path: Path, advice: str) -> Iterator[Any]:
    """Yield pyarrow's module ``parquet``; its errors inside the block name the file.

    Args:
        path: the file that is read in the block.
        advice: remedy for a damaged file, for messages.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataError(
            f"{path}: reading parquet needs pyarrow ({error}). Install it (pip install pyarrow)."
        ) from error
    try:
        yield parquet
    except DataError:
        raise
    # Damaged names and repeated columns are ValueError and KeyError.
    except (ArrowException, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())  # some of pyarrow's messages have several lines
        raise DataError(f"{path}: damaged parquet file ({reason}). {advice}") from error
