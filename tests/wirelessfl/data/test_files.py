"""Folders of data sets; downloads are stored completely or not at all."""

import gzip
import hashlib
import io
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from rich.console import Console

from wirelessfl.base.errors import DataError
from wirelessfl.data import files
from wirelessfl.data.files import Place, Published, download, find_place, read_verified
from wirelessfl.data.mnist import MnistLike

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
PACKED = gzip.compress(CONTENT)
SHA256 = hashlib.sha256(CONTENT).hexdigest()

Answer = Callable[[BaseHTTPRequestHandler], None]


def whole(body: bytes) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def broken_off(handler: BaseHTTPRequestHandler) -> None:
    """Send a response with its full length, but close the connection after half of it."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(PACKED)))
    handler.end_headers()
    handler.wfile.write(PACKED[: len(PACKED) // 2])


class Server:
    """A server on 127.0.0.1 that answers by path and counts requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                if self.path in outer.answers:
                    outer.answers[self.path](self)
                else:
                    self.send_error(404)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Server()
    yield running
    running.close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def place(cache) -> Place:
    return find_place("toy")


@pytest.fixture
def file(server) -> Published:
    return Published("toy-ubyte.gz", server.url, f"sha256:{SHA256}")


def listing(place: Place) -> list[str]:
    return sorted(path.name for path in place.folder.iterdir()) if place.folder.exists() else []


def test_a_good_file_is_downloaded_once(server, file, place):
    server.answers["/toy-ubyte.gz"] = whole(PACKED)
    assert read_verified(file, place) == CONTENT
    assert listing(place) == ["toy-ubyte.gz"]
    assert read_verified(file, place) == CONTENT
    assert server.requests == ["/toy-ubyte.gz"]


def test_a_file_decompressed_by_the_server_is_accepted(server, file, place):
    server.answers["/toy-ubyte.gz"] = whole(CONTENT)
    assert read_verified(file, place) == CONTENT


def test_concurrent_downloads_do_not_interfere(server, file, place):
    """Four concurrent downloads succeed and leave one file."""
    server.answers["/toy-ubyte.gz"] = whole(PACKED)
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(download(file, place))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [CONTENT] * 4
    assert listing(place) == ["toy-ubyte.gz"]


def flipped(body: bytes) -> bytes:
    return body[:5000] + bytes([body[5000] ^ 1]) + body[5001:]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (broken_off, "cannot be downloaded"),
        (whole(PACKED[: len(PACKED) // 2]), "truncated or damaged gzip"),
        (whole(flipped(PACKED)), "truncated or damaged gzip"),
        (whole(gzip.compress(flipped(CONTENT))), "content has SHA-256 "),
        (whole(b"<html>please log in</html>"), "content has SHA-256 "),
        (whole(b""), "content has SHA-256 "),
        (None, "404"),
    ],
    ids=["hang-up", "truncated", "damaged", "other content", "login page", "empty", "absent"],
)
def test_a_bad_download_leaves_nothing_behind(server, file, place, answer, reason):
    if answer is not None:
        server.answers["/toy-ubyte.gz"] = answer
    with pytest.raises(DataError, match=reason) as caught:
        read_verified(file, place)
    for part in ("toy/toy-ubyte.gz", SHA256, str(place.folder), "--data-dir", file.url):
        assert part in str(caught.value)
    assert server.requests == ["/toy-ubyte.gz"]
    assert listing(place) == []


def test_a_failed_connection_is_a_data_error(file, place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = replace(file, base_url=f"http://127.0.0.1:{port}/")  # no server listens there
    with pytest.raises(DataError, match=r"cannot be downloaded.*ConnectionError"):
        read_verified(file, place)
    assert listing(place) == []


def test_an_unwritable_cache_is_a_data_error(server, file, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot be downloaded"):
        read_verified(file, find_place("toy"))


def test_an_interrupted_download_leaves_nothing_behind(server, file, place):
    """After Ctrl-C during a download, the partial file is removed."""
    seen: list[list[str]] = []
    main = threading.main_thread().ident
    assert main is not None

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(PACKED)))
        handler.end_headers()
        handler.wfile.write(PACKED[: len(PACKED) // 2])
        handler.wfile.flush()
        deadline = time.monotonic() + 60
        while not any(p.stat().st_size for p in place.folder.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        seen.append(listing(place))
        signal.pthread_kill(main, signal.SIGINT)
        done.wait(60)

    done = threading.Event()
    server.answers["/toy-ubyte.gz"] = answer
    try:
        with pytest.raises(KeyboardInterrupt):
            read_verified(file, place)
    finally:
        done.set()
    (during,) = seen
    assert len(during) == 1
    assert during[0].endswith(".part")
    assert listing(place) == []


def test_progress_is_shown_on_terminals_only(server, file, place):
    server.answers["/toy-ubyte.gz"] = whole(PACKED)
    terminal, log = io.StringIO(), io.StringIO()
    download(file, place, Console(file=terminal, force_terminal=True, width=100))
    assert "toy/toy-ubyte.gz" in terminal.getvalue()
    assert f"{len(PACKED) / 1e3:.1f}/{len(PACKED) / 1e3:.1f} kB" in terminal.getvalue()
    download(file, place, Console(file=log, force_terminal=False))
    assert log.getvalue() == ""


def test_a_damaged_file_in_the_cache_is_named_not_replaced(server, file, place):
    place.folder.mkdir(parents=True)
    (place.folder / file.name).write_bytes(PACKED[:-9])
    with pytest.raises(DataError, match=r"Delete .*toy-ubyte.gz to download it again"):
        read_verified(file, place)
    assert server.requests == []


def test_nothing_is_downloaded_to_an_explicit_folder(server, file, cache, tmp_path):
    with pytest.raises(DataError, match=r"is not a folder: --data-dir .* needs a folder 'toy'"):
        find_place("toy", tmp_path)
    (tmp_path / "toy").mkdir()
    with pytest.raises(DataError, match=r"has no toy-ubyte.gz or toy-ubyte. Put it there"):
        read_verified(file, find_place("toy", tmp_path))
    assert server.requests == []
    (tmp_path / "toy" / "toy-ubyte").write_bytes(CONTENT)
    assert read_verified(file, find_place("toy", tmp_path)) == CONTENT


def test_data_sets_that_wirelessfl_data_lacks_are_in_the_cache(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("WIRELESSFL_DATA", str(tmp_path))
    assert find_place("toy") == Place("toy", cache / "toy", "cache")
    (tmp_path / "toy").mkdir()
    assert find_place("toy") == Place("toy", tmp_path / "toy", "WIRELESSFL_DATA")
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    assert find_place("toy", tmp_path / "mine").chosen_by == "--data-dir"


def test_wirelessfl_data_that_is_not_a_folder_is_an_error(cache, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for name in ("absent", "file"):
        monkeypatch.setenv("WIRELESSFL_DATA", str(tmp_path / name))
        with pytest.raises(DataError, match=f"WIRELESSFL_DATA is .*{name}', .*not .*unset it"):
            find_place("toy")
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    assert find_place("toy", tmp_path / "mine").chosen_by == "--data-dir"
    monkeypatch.setenv("WIRELESSFL_DATA", "")  # equivalent to unset
    assert find_place("toy").chosen_by == "cache"


def test_an_mnist_like_data_set_is_downloaded_and_cached(server, cache):
    """MNIST's loader loads and caches four small IDX files."""
    rng = np.random.default_rng(1)
    contents = []
    for samples in (6, 3):
        images = rng.integers(0, 256, (samples, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, samples, dtype=np.uint8)
        contents.append(struct.pack(">4B3I", 0, 0, 8, 3, *images.shape) + images.tobytes())
        contents.append(struct.pack(">4BI", 0, 0, 8, 1, samples) + labels.tobytes())
    names = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"]
    for name, content in zip(names, contents, strict=True):
        server.answers[f"/{name}-ubyte.gz"] = whole(gzip.compress(content))
    digests = tuple(hashlib.sha256(content).hexdigest() for content in contents)
    toy = MnistLike("toy", server.url, digests)  # type: ignore[arg-type]
    data = toy.load()
    np.testing.assert_array_equal(
        np.rint((data.test_inputs.numpy()[:, 0] + 1) * 127.5),
        np.frombuffer(contents[2], np.uint8, offset=16).reshape(3, 28, 28),
    )
    assert data.train_labels.tolist() == list(contents[1][8:])
    assert len(list((cache / "toy").iterdir())) == 4
    offline = replace(toy, base_url="http://127.0.0.1:9/")
    assert offline.load().train_labels.tolist() == data.train_labels.tolist()
