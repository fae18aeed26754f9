"""Files of stored folders: opened without following links, and written whole or not at all.

A folder may come from somebody else. A link in it must not lead reads or writes out of it, and a
pipe or a device must not block or act. The folder itself may be a link.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from safetensors import SafetensorError

from wirelessfl.base.errors import FULL, ConfigError

MODES = {
    "rb": os.O_RDONLY,
    "r+b": os.O_RDWR,
    "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}
SAFE = sum(
    getattr(os, name, 0)  # not all systems have all of them
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)
TEXT_BYTES = 1 << 26
"""Maximum size of a stored text that is not a table of rows."""
DRAFT = re.compile(
    r"\.[0-9a-f]{16}\.part"
    r"|\.tmp\w{6}"  # of safetensors
)
"""Names of unfinished files."""
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class NotWrittenError(ConfigError):
    """A file of a run cannot be written, because there is no space, or it has been removed."""


def open_stored(path: Path, mode: str = "rb") -> BinaryIO:
    """Open a file of a stored folder, if it is a regular file.

    Args:
        path: the file.
        mode: ``rb``; ``r+b``; ``ab``, which creates it if it is missing; ``xb``, which creates it.

    Raises:
        OSError: it is a link, a pipe, a device or a folder, or cannot be opened.
    """
    stored_size(path)  # before a device is opened

    def opener(name: str, _: int) -> int:
        number = os.open(name, MODES[mode] | SAFE, 0o666)
        try:
            _check_regular(path, os.fstat(number))
        except OSError:
            os.close(number)
            raise
        return number

    return cast(BinaryIO, open(path, mode, opener=opener))


def stored_size(path: Path) -> int | None:
    """Size of a file of a stored folder in bytes; None if there is no such file.

    Raises:
        OSError: it is not a regular file.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    _check_regular(path, status)
    return status.st_size


def _check_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "it is a link, and only the folder may be one", str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_stored(path: Path, limit: int | None = None) -> bytes:
    """The content of a file of a stored folder.

    Args:
        path: the file.
        limit: maximum size in bytes.

    Raises:
        OSError: it cannot be opened or is not a regular file.
        ValueError: it is larger.
    """
    with open_stored(path) as file:
        size = os.fstat(file.fileno()).st_size
        if limit is not None and size > limit:
            raise ValueError(f"it has {size} bytes, and at most {limit} are read")
        return file.read()


@contextmanager
def stored_name(path: Path) -> Iterator[str | Path]:
    """Another name of an opened file of a stored folder, for readers that take no open file."""
    with open_stored(path) as file:
        name = Path(f"/dev/fd/{file.fileno()}")
        yield name if name.exists() else path


def copy_stored(source: Path, target: Path) -> None:
    """Copy a file of a stored folder to a new file."""
    with open_stored(source) as content, open_stored(target, "xb") as copy:
        shutil.copyfileobj(content, copy)


def is_draft(name: str) -> bool:
    """Whether a file of this name is unfinished."""
    return DRAFT.fullmatch(name) is not None


def remove_drafts(folder: Path) -> None:
    """Remove the unfinished files of processes that were killed."""
    for file in folder.iterdir():
        if is_draft(file.name):
            with suppress(OSError):
                file.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new, empty file; rename it to ``path`` once its content is on disk.

    Its permissions follow the umask, whatever wrote it.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    with open_stored(draft, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode
    try:
        yield draft
        with open_stored(draft) as file:
            if os.fstat(file.fileno()).st_mode != mode:
                with suppress(OSError):  # some file systems have no permissions
                    os.chmod(draft, stat.S_IMODE(mode))
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # of a write, e.g. a full disk
            error.filename = str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def reading(file: Path, remedy: str) -> Iterator[None]:
    """Name the file and the remedy if a file of a run is damaged.

    Args:
        file: the file that is read.
        remedy: what to do, the last sentence of the message.

    Raises:
        ConfigError: the file is missing or damaged, or may not be read.
    """
    try:
        if stored_size(file) is None:
            raise ConfigError(f"{file} is missing. {remedy}")
        if not os.access(file, os.R_OK):
            raise ConfigError(f"{file} cannot be read: permission denied.")
        yield
    except ConfigError:
        raise
    except DAMAGE as error:
        raise ConfigError(f"{file} is damaged: {why(error)}. {remedy}") from error


DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors of reading a damaged file."""


def why(error: BaseException) -> str:
    """The reason of an error in a file, in one line."""
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, KeyError):
        return f"it has no {error}"
    text = str(getattr(error, "strerror", None) or error)
    return text.partition("\n")[0].rstrip(".") or type(error).__name__


@contextmanager
def writing(file: Path, folder: Path) -> Iterator[None]:
    """Name the file, and the command that resumes the run, if a file cannot be written.

    Args:
        file: the file that is written.
        folder: folder of the run.

    Raises:
        NotWrittenError: the file cannot be written.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        code = re.search(r"os error (\d+)", str(error))
        number = getattr(error, "errno", None) or (int(code[1]) if code else None)
        remedy = "Free disk space" if number in FULL else "Remove the cause"
        remedy = "Allow this user to write there" if number in FORBIDDEN else remedy
        raise NotWrittenError(
            f"{file} cannot be written: {why(error)}. {remedy}, then resume: "
            f"wirelessfl resume {folder}"
        ) from error


def check_writable(path: Path, name: str = "out") -> None:
    """Check that a folder can be written or created.

    Args:
        path: the folder.
        name: the setting that gives it, for the error.
    """
    try:
        there = next(p for p in (path, *path.absolute().parents) if p.exists())
    except OSError as error:  # such as a name that is too long
        raise ConfigError(f"{name} is {path}: {error.strerror}. Choose another folder.") from error
    if not (there.is_dir() and os.access(there, os.W_OK)):
        need = "writable" if there.is_dir() else "a folder"
        raise ConfigError(f"{name} is {path}: {there} is not {need}. Choose another folder.")
