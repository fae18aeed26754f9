"""Where the files of a data set come from, and the check that they are the published ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import zlib
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wirelessfl.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

ENVIRONMENT = "WIRELESSFL_DATA"
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Place:
    """The folder of one data set, and who chose it."""

    dataset: str
    folder: Path
    chosen_by: Literal["--data-dir", "WIRELESSFL_DATA", "cache"]


@dataclass(frozen=True)
class Published:
    """A file as its publisher offers it.

    Args:
        name: its name there, e.g. ``train-images-idx3-ubyte.gz``.
        base_url: the address without the name.
        digest: ``algorithm:hex``, of the decompressed content, or of the file itself for an
            archive (``.tar.gz``), which is what publishers of archives give.
    """

    name: str
    base_url: str
    digest: str

    @property
    def url(self) -> str:
        """Where it can be had."""
        return f"{self.base_url.rstrip('/')}/{self.name}"

    @property
    def is_archive(self) -> bool:
        """Whether the digest is that of the file as it is."""
        return self.name.endswith(".tar.gz")

    @property
    def local_names(self) -> tuple[str, ...]:
        """Names under which it may lie in a folder: gzipped, and for single files not."""
        return (self.name,) if self.is_archive else (self.name, self.name.removesuffix(".gz"))


def cache_folder() -> Path:
    """The user's cache of downloaded data sets."""
    import pooch

    return Path(pooch.os_cache("wirelessfl"))


def find_place(
    dataset: str, data_dir: str | os.PathLike[str] | None = None, *, source: str | None = None
) -> Place:
    """The folder to read ``dataset`` from: below ``data_dir``, WIRELESSFL_DATA, or the cache.

    WIRELESSFL_DATA may hold some data sets only: those without a folder there are downloaded.

    Args:
        dataset: its folder's name.
        data_dir: the folder around it.
        source: address of a data set that is not downloaded automatically, for the message.

    Raises:
        DataError: ``data_dir`` is given and has no folder of that name, or WIRELESSFL_DATA names
            no folder.
    """
    if data_dir is not None:
        folder = Path(data_dir, dataset)
        if not folder.is_dir():
            download = "Leave --data-dir out to download them."
            remedy = f"Get them from {source}." if source else download
            raise DataError(
                f"{folder} is not a folder: --data-dir {data_dir} needs a folder {dataset!r} with "
                f"the files of that data set. {remedy}"
            )
        return Place(dataset, folder, "--data-dir")
    root = os.environ.get(ENVIRONMENT)
    if root and not Path(root).is_dir():
        raise DataError(
            f"{ENVIRONMENT} is {root!r}, which is not an existing folder. Correct it, or unset it "
            "to download data sets to the cache."
        )
    if root and Path(root, dataset).is_dir():
        return Place(dataset, Path(root, dataset), "WIRELESSFL_DATA")
    return Place(dataset, cache_folder() / dataset, "cache")


def read_verified(file: Published, place: Place) -> bytes:
    """Content of ``file`` from ``place``: decompressed (an archive: as it is) and verified.

    Only the cache is filled by downloading; a folder that the user chose is read as it is.

    Raises:
        DataError: the file is absent, damaged or another one, or cannot be downloaded.
    """
    for name in file.local_names:
        path = place.folder / name
        if path.is_file():
            return _verified_content(path, file, f"{path}", _advice(file, place, path))
    if place.chosen_by == "cache":
        return download(file, place)
    raise DataError(
        f"{place.folder} (from {place.chosen_by}) has no {' or '.join(file.local_names)}. Put it "
        f"there (published at {file.url}), or leave {place.chosen_by} out to download it."
    )


def download(file: Published, place: Place, console: Console | None = None) -> bytes:
    """Fetch ``file`` into ``place`` and return its verified content, as ``read_verified`` does.

    It appears under its name whole and verified, or not at all.

    Args:
        file: what to fetch.
        place: where to.
        console: where to draw a progress bar, if it is a terminal; None for standard error.

    Raises:
        DataError: no connection, a broken one, or other content than published.
    """
    import pooch
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    title = f"{place.dataset}/{file.name}"
    target = place.folder / file.name
    # Unique, so that two processes that download at once do not write into one file.
    partial = place.folder / f".{file.name}.{secrets.token_hex(4)}.part"
    console = console or Console(stderr=True)
    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        with (
            ExitStack() as opened,
            Progress(*columns, console=console, disable=not console.is_terminal) as progress,
        ):

            def close_later(response: Any, **_: object) -> None:
                opened.callback(response.close)  # pooch leaves it open when a transfer fails

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
            f"Try again later, or put a good copy into {place.folder}, or into a folder "
            f"{place.dataset!r} below --data-dir.",
        )
        os.replace(partial, target)
    except OSError as error:  # the errors of requests are OSErrors too
        raise DataError(
            f"{title} cannot be downloaded from {file.url}: {type(error).__name__}: {error}. "
            f"Try again, or get it elsewhere and put it into {place.folder}, or into a folder "
            f"{place.dataset!r} below --data-dir. Expected {file.digest}."
        ) from error
    finally:  # also on Ctrl-C
        with suppress(OSError):
            partial.unlink()
    return content


class _Bar:
    """The progress bar that pooch asks for, drawn by rich."""

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
        pass  # the Progress around the transfer closes itself


def _advice(file: Published, place: Place, path: Path) -> str:
    if file.is_archive:
        unpack = " Unpack an archive that was compressed again: its files are read as they are."
    else:
        unpack = ""
    if place.chosen_by == "cache":
        return f"Delete {path} to download it again, or point --data-dir elsewhere.{unpack}"
    return f"Replace it by the file at {file.url}, or point {place.chosen_by} elsewhere.{unpack}"


def _verified_content(path: Path, file: Published, title: str, advice: str) -> bytes:
    algorithm, expected = file.digest.split(":")
    hash_name = {"sha256": "SHA-256", "md5": "MD5"}[algorithm]
    content = path.read_bytes()
    # By its first bytes, not its name: servers and browsers decompress without renaming.
    if not file.is_archive and content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(
                f"{title}: truncated or damaged gzip data ({error}), expected content with "
                f"{hash_name} {expected}. {advice}"
            ) from error
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise DataError(f"{title}: content has {hash_name} {found}, expected {expected}. {advice}")
    return content
