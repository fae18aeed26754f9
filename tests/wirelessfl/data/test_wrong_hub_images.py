"""Wrong files, images and labels in copies from the hub are named with a remedy."""

import struct
import zlib

import pyarrow
import pytest
from pyarrow import parquet

from tests.wirelessfl.data.hub_files import (
    LABELS,
    SMALL,
    STRUCT,
    encoded,
    pictures,
    write,
    write_parts,
)
from wirelessfl.data import files, load_dataset
from wirelessfl.data.decoding import FORMATS
from wirelessfl.data.hub_images import own_images
from wirelessfl.errors import DataError


def chunk(kind, data):
    """A chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def deep(side=32):
    """An RGB PNG with 16 bits per channel, which Pillow reads but does not write."""
    rows = zlib.compress((b"\0" + bytes(range(6)) * side) * side)
    header = struct.pack(">IIBBBBB", side, side, 16, 2, 0, 0, 0)
    return FORMATS["PNG"] + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def wrong(name):
    """A change to a file of five images, and the expected message."""
    good = [encoded(pixels) for pixels in pictures(5)]
    labels = LABELS["train"]

    def put(contents=good, labels=labels, **columns):
        return lambda path: write(path, contents, labels, **columns)

    def second(content):
        return put([good[0], content, *good[2:]])

    def texts(path):
        rows = {"img": [f"{i}.png" for i in range(5)], "label": labels}
        parquet.write_table(pyarrow.table(rows), path)

    def path_only(path):
        rows = [{"bytes": content, "path": None} for content in good[:4]]
        rows.append({"bytes": None, "path": "a.png"})
        table = {"img": pyarrow.array(rows, STRUCT), "label": labels}
        parquet.write_table(pyarrow.table(table), path)

    def two_labels(path):
        first = parquet.read_table(path)
        parquet.write_table(first.append_column("label", first.column("label")), path)

    return {
        "no image column": (put(image="pixels"), r"the columns are pixels, label; expected img or"),
        "no label column": (put(label="class"), r"the columns are img, class; .*, and label\."),
        "text instead of images": (texts, r"column img has type string, expected bytes or a str"),
        "only a path": (path_only, r"row 4: the image has no bytes, only the path 'a\.png'\."),
        "null": (second(None), r"row 1: the image has no bytes\."),
        "no image": (second(b"<html>"), r"row 1: the image is neither PNG nor JPEG\."),
        "truncated PNG": (second(good[1][:-900]), r"row 1: damaged PNG image \(.+\)\."),
        "truncated JPEG": (
            second(encoded(pictures(1)[0], "JPEG")[:-300]),
            r"row 1: damaged JPEG image \(.+\)\.",
        ),
        "other size": (
            second(encoded(pictures(1, (32, 31, 3))[0])),
            r"row 1: the image is 31x32, expected 32x32\.",
        ),
        "transparent": (
            second(encoded(pictures(1)[0], mode="RGBA")),
            r"row 1: the image has mode RGBA, expected RGB or L \(8-bit grey\)\.",
        ),
        "16 bits": (second(deep()), r"row 1: the image has 16 bits per channel, expected at most"),
        "transparent colour": (
            second(good[1][:33] + chunk(b"tRNS", bytes(6)) + good[1][33:]),
            r"row 1: the image has a transparent colour \(chunk tRNS\), expected none\.",
        ),
        "label too large": (put(labels=[0, 1, 2, 10, 4]), r"row 3: the label is 10, expected 0 to"),
        "label negative": (put(labels=[0, -1, 2, 1, 4]), r"row 1: the label is -1, expected 0 to"),
        "label null": (put(labels=[0, 1, None, 1, 4]), r"row 2: the label is null\."),
        "label not integer": (
            put(labels=[0.5, 1, 2, 1, 4]),
            r"column label has type double, e\.g\. 0\.5 in row 0; labels must be integers >= 0\.",
        ),
        "label text": (put(labels=["cat"] * 5), r"has type string, e\.g\. 'cat' in row 0"),
        "no rows": (put([], pyarrow.array([], "int64")), r" has no rows\."),
        "not parquet": (
            lambda path: path.write_bytes(b"PAR1 no parquet PAR1"),
            r"damaged parquet file \(.+\)\.",
        ),
        "two label columns": (two_labels, r"damaged parquet file \(.*label.*\)\."),
        "damaged column name": (
            lambda path: path.write_bytes(path.read_bytes().replace(b"label", b"lab\xffl")),
            r"damaged parquet file \(.*can't decode byte.*\)\.",
        ),
        "truncated parquet": (
            lambda path: path.write_bytes(path.read_bytes()[:-40]),
            r"damaged parquet file \(.+\)\.",
        ),
    }[name]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "name",
    [
        "no image column",
        "no label column",
        "text instead of images",
        "only a path",
        "null",
        "no image",
        "truncated PNG",
        "truncated JPEG",
        "other size",
        "transparent",
        "16 bits",
        "transparent colour",
        "label too large",
        "label negative",
        "label null",
        "label not integer",
        "label text",
        "no rows",
        "not parquet",
        "two label columns",
        "damaged column name",
        "truncated parquet",
    ],
)
def test_wrong_files_are_named_in_one_line_with_a_remedy(name, tmp_path):
    home = tmp_path / "svhn"
    write_parts(home)
    do, message = wrong(name)
    do(home / "train.parquet")
    with pytest.raises(DataError, match=rf"svhn/train\.parquet.*{message}.*Download") as caught:
        SMALL.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_message_for_a_wrong_image_has_place_and_remedy_once(tmp_path):
    write_parts(tmp_path, shape=(32, 32, 3))
    test = tmp_path / "test.parquet"
    write(test, [encoded(pictures(1, (9, 8, 3))[0])], [0])
    with pytest.raises(DataError) as caught:
        own_images(tmp_path).load()
    assert str(caught.value) == (
        f"{test}, row 0: the image is 8x9 RGB, but the first training image 32x32 RGB; all need "
        f"the same size and mode. {own_images(tmp_path).remedy}"
    )


def test_damaged_pages_are_named(tmp_path):
    """The footer is intact, but the images' pages are not."""
    write_parts(tmp_path)
    content = bytearray((tmp_path / "train.parquet").read_bytes())
    content[4:2000] = bytes(1996)
    (tmp_path / "train.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"train\.parquet: damaged parquet file \(.*Complete or c"):
        own_images(tmp_path).load()


def test_wrong_own_images_and_labels_are_named(tmp_path):
    write_parts(tmp_path)
    test = tmp_path / "test.parquet"
    for pixels, found in ((pictures(1, (9, 8, 3)), "8x9 RGB"), (pictures(1, (32, 32)), "32x32 L")):
        write(test, [encoded(pixels[0])], [0])
        message = rf"test\.parquet, row 0: the image is {found}, but the first training image 32x32"
        with pytest.raises(DataError, match=message):
            own_images(tmp_path).load()
    write(test, [encoded(pictures(1)[0])], [10])
    with pytest.raises(DataError, match=r"row 0: the label is 10, expected 0 to 9\. No training"):
        own_images(tmp_path).load()
    for label in (2**40, 2**64 - 1):
        write(test, [encoded(pictures(1)[0])], pyarrow.array([label], "uint64"))
        with pytest.raises(DataError, match=rf"row 0: the label is {label}, expected 0 to 65535"):
            own_images(tmp_path).load()


def test_labels_that_are_not_class_indices_are_refused(tmp_path):
    """A tenth of the labels must occur: otherwise each number in between would be a class."""
    pixels = [encoded(one) for one in pictures(4)]
    for labels, valid in (([0, 1, 2, 39], True), ([0, 1, 2, 40], False), ([3, 50, 3, 50], False)):
        for part in ("train", "test"):
            write(tmp_path / f"{part}.parquet", pixels, labels)
        if valid:
            assert own_images(tmp_path).load().classes == 40
        else:
            values = f"have {len(set(labels))} values up to {max(labels)}"
            with pytest.raises(DataError, match=f"{values}. Number the classes from 0, without"):
                own_images(tmp_path).load()


def test_missing_parts_and_images_are_named(tmp_path, monkeypatch):
    home = tmp_path / "svhn"
    write_parts(home)
    with pytest.raises(DataError, match=r"svhn has 5 training and 2 test images, but svhn has 73"):
        load_dataset("svhn", tmp_path)
    (home / "test.parquet").unlink()
    with pytest.raises(DataError, match=r"svhn has train\.parquet but no test\.parquet\. Download"):
        load_dataset("svhn", tmp_path)
    (home / "train.parquet").unlink()
    with pytest.raises(DataError, match=r"svhn has no train\.parquet and test\.parquet, nor numb"):
        load_dataset("svhn", tmp_path)
    for name, remedy in (("svhn", "Download all .*/svhn"), ("cifar10-jpeg", "Use the train and t")):
        with pytest.raises(DataError, match=rf"needs a folder '{name}'.*{remedy}"):
            load_dataset(name, tmp_path / "elsewhere")
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError, match=r"cache/svhn has no train\.parquet"):  # no download
        load_dataset("svhn")
