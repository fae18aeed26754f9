"""Published images: digits, IDX files, CIFAR's archive, TinyImageNet's zip; and damaged files."""

import gzip
import io
import shutil
import struct
import tarfile
import zipfile
from dataclasses import replace
from hashlib import md5
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image
from rich.console import Console

from wirelessfl.base.errors import DataError
from wirelessfl.data import files, load_dataset, mnist
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.mnist import parse_idx
from wirelessfl.data.tinyimagenet import load_tiny_imagenet


def test_digits_are_those_of_scikit_learn_split_by_class():
    from sklearn.datasets import load_digits

    digits = load_dataset("digits")
    assert digits.input_shape == (1, 8, 8)
    assert digits.train_inputs.min() == -1
    assert digits.train_inputs.max() == 1
    pixels, labels = load_digits(return_X_y=True)
    per_class = np.bincount(labels)
    in_test = np.bincount(digits.test_labels.numpy())
    assert np.abs(in_test - 0.2 * per_class).max() <= 0.5
    # Training and test samples together are the original samples, each once, with its label.
    inputs = torch.cat([digits.train_inputs, digits.test_inputs]).reshape(-1, 64)
    targets = torch.cat([digits.train_labels, digits.test_labels])
    ours = np.column_stack([(inputs.numpy() + 1) * 8, targets])
    theirs = np.column_stack([pixels, labels])
    np.testing.assert_array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])
    again = load_dataset("digits")
    assert torch.equal(again.test_inputs, digits.test_inputs)


def test_digits_are_equal_if_scikit_learn_keeps_its_file_elsewhere(monkeypatch):
    """Pixels and labels are the same if the file is not in its usual place."""
    usual = mnist._pixels_and_labels.__wrapped__()
    monkeypatch.setattr(mnist, "find_spec", lambda name: None)
    for one, other in zip(usual, mnist._pixels_and_labels.__wrapped__(), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.thorough(every=8)
@pytest.mark.realdata
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_real_files_are_the_published_ones(name, real_data):
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    data = load_dataset(name, real_data)
    assert data.train_inputs.shape == (60_000, 1, 28, 28)
    assert data.test_inputs.shape == (10_000, 1, 28, 28)
    assert data.train_inputs.aminmax() == (-1, 1)
    assert data.train_labels.unique().tolist() == list(range(10))


@pytest.mark.thorough
@pytest.mark.realdata
def test_the_decompressed_content_is_verified(real_data, tmp_path):
    """Recompressed and plain copies are accepted; one flipped byte in the content is an error."""
    folder = tmp_path / "fashion-mnist"
    shutil.copytree(real_data / "fashion-mnist", folder)
    images = folder / "t10k-images-idx3-ubyte.gz"
    labels = folder / "t10k-labels-idx1-ubyte.gz"
    content = gzip.decompress(images.read_bytes())
    images.write_bytes(gzip.compress(content, 1))
    labels.with_suffix("").write_bytes(gzip.decompress(labels.read_bytes()))
    labels.unlink()
    copy = load_dataset("fashion-mnist", tmp_path)
    original = load_dataset("fashion-mnist", real_data)
    assert torch.equal(copy.test_inputs, original.test_inputs)
    assert torch.equal(copy.test_labels, original.test_labels)

    flipped = bytearray(content)
    flipped[1000] ^= 1
    images.write_bytes(gzip.compress(bytes(flipped), 1))
    with pytest.raises(DataError, match=r"t10k-images.*has SHA-256 .*expected 5b4141f0.*Replace"):
        load_dataset("fashion-mnist", tmp_path)


def write_cifar(cifar, folder: Path, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Write random files in the publisher's layout; returns their records [records, bytes]."""
    folder.mkdir(parents=True)
    tables = {}
    for name in (*cifar.train_files, cifar.test_file):
        records = cifar.test_records if name == cifar.test_file else cifar.train_records
        columns = [rng.integers(0, count, (records, 1)) for count in cifar.label_ranges]
        pixels = rng.integers(0, 256, (records, 3072))
        tables[name] = np.concatenate([*columns, pixels], axis=1).astype(np.uint8)
        (folder / name).write_bytes(tables[name].tobytes())
    return tables


def packed(cifar, root: Path, *others: tarfile.TarInfo):
    """Write an archive of ``root / unpacked``, and others of 4 bytes; returns it with its MD5."""
    target = root / cifar.name / cifar.archive.name
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:gz") as archive:
        archive.add(root / "unpacked", cifar.folder)
        for member in others:
            archive.addfile(member, io.BytesIO(b"evil"))
    digest = md5(target.read_bytes(), usedforsecurity=False).hexdigest()
    return replace(cifar, archive=replace(cifar.archive, digest=f"md5:{digest}"))


@pytest.fixture(params=[CIFAR10, CIFAR100], ids=["cifar10", "cifar100"])
def small_cifar(request):
    return replace(request.param, train_records=7, test_records=4)


def test_cifar_records_become_the_correct_images_and_labels(small_cifar, tmp_path):
    tables = write_cifar(small_cifar, tmp_path / "unpacked", np.random.default_rng(0))
    data = packed(small_cifar, tmp_path).load(tmp_path)
    assert data.verification == "MD5 of the archive"
    assert data.train_inputs.shape == (7 * len(small_cifar.train_files), 3, 32, 32)
    assert data.test_inputs.shape == (4, 3, 32, 32)
    first = len(small_cifar.label_ranges)
    table = np.concatenate([tables[name] for name in small_cifar.train_files])
    for record, channel, row, column in [(0, 0, 0, 1), (3, 1, 2, 0), (6, 2, 31, 30)]:
        byte = table[record, first + 1024 * channel + 32 * row + column]
        assert data.train_inputs[record, channel, row, column] == pytest.approx(byte / 127.5 - 1)
    np.testing.assert_array_equal(data.train_labels, table[:, first - 1])
    np.testing.assert_array_equal(data.test_labels, tables[small_cifar.test_file][:, first - 1])


def test_damaged_cifar_files_are_named(small_cifar, tmp_path):
    tables = write_cifar(small_cifar, tmp_path / "unpacked", np.random.default_rng(1))
    victim = tmp_path / "unpacked" / small_cifar.train_files[-1]
    table = tables[victim.name]

    victim.write_bytes(table.tobytes()[:-1])
    with pytest.raises(DataError, match=rf"{victim.name}: {table.size - 1} bytes, expected"):
        packed(small_cifar, tmp_path).load(tmp_path)
    for column, count in enumerate(small_cifar.label_ranges):
        wrong = table.copy()
        wrong[2, column] = count
        victim.write_bytes(wrong.tobytes())
        with pytest.raises(DataError, match=rf"record 2 has label {count} in byte {column}"):
            packed(small_cifar, tmp_path).load(tmp_path)
    victim.unlink()
    with pytest.raises(DataError, match=rf"not a tar.gz with .*{victim.name}"):
        packed(small_cifar, tmp_path).load(tmp_path)


def test_cifar_archives_are_checked(small_cifar, tmp_path):
    write_cifar(small_cifar, tmp_path / "unpacked", np.random.default_rng(2))
    archive = tmp_path / small_cifar.name / packed(small_cifar, tmp_path).archive.name
    with pytest.raises(DataError, match=rf"MD5 .*{small_cifar.archive.digest[4:]}.*Replace it"):
        small_cifar.load(tmp_path)  # random records do not have the published digest
    archive.write_bytes(b"no archive")
    digest = md5(b"no archive", usedforsecurity=False).hexdigest()
    other = replace(small_cifar, archive=replace(small_cifar.archive, digest=f"md5:{digest}"))
    with pytest.raises(DataError, match=rf"{archive.name}: not a tar.gz with"):
        other.load(tmp_path)


def test_nothing_in_an_archive_is_executed_or_extracted(tmp_path):
    """Files in an archive are read by name, and a hostile path is ignored."""
    cifar = replace(CIFAR100, train_records=2, test_records=2)
    write_cifar(cifar, tmp_path / "unpacked", np.random.default_rng(3))
    member = tarfile.TarInfo("../escaped")
    member.size = 4
    packed(cifar, tmp_path, member).load(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cifar100", "unpacked"]
    assert [path.name for path in (tmp_path / "cifar100").iterdir()] == [cifar.archive.name]


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0)))
def test_round_trip(array):
    np.testing.assert_array_equal(parse_idx(idx_bytes(array), array.ndim), array)


@given(st.data())
def test_any_truncation_and_any_tail_is_an_error(data):
    content = idx_bytes(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(DataError, match=r"images\.idx: (starts|ends|is truncated)"):
        parse_idx(content[:cut], 3, "images.idx")
    with pytest.raises(DataError, match="trailing bytes"):
        parse_idx(content + data.draw(st.binary(min_size=1)), 3)


@pytest.mark.parametrize("magic", [b"\0\0\x08\x01", b"\0\0\x0d\x03", b"\1\0\x08\x03", b"PK\3\4"])
def test_another_magic_number_is_shown(magic):
    content = magic + idx_bytes(np.zeros((2, 2, 2), np.uint8))[4:]
    with pytest.raises(DataError, match=magic.hex()):
        parse_idx(content, 3)


WNIDS = ["n02", "n01", "n03"]  # not sorted: labels follow the file's order
TRAIN = {"n01": 2, "n02": 3, "n03": 1}
ARCHIVE = "tiny-imagenet-200.zip"
TEST = {"val_1.JPEG": "n03", "val_0.JPEG": "n01"}


def colour(wnid: str, number: int) -> tuple[int, int, int]:
    """The colour of an image; a JPEG of a single colour is exact up to rounding."""
    return (40 * int(wnid[1:]), 30 * number + 20, 200)


def jpeg(shade: tuple[int, int, int] | int, size: tuple[int, int] = (64, 64)) -> bytes:
    mode = "L" if isinstance(shade, int) else "RGB"
    out = io.BytesIO()
    Image.new(mode, size, shade).save(out, "JPEG", quality=95)
    return out.getvalue()


def write(root: Path) -> None:
    """Write a tiny data set in the published format; its image val_0 is grey."""
    for wnid, count in TRAIN.items():
        images = root / "train" / wnid / "images"
        images.mkdir(parents=True)
        for number in range(count):
            (images / f"{wnid}_{number}.JPEG").write_bytes(jpeg(colour(wnid, number)))
        boxes = "".join(f"{wnid}_{number}.JPEG\t0\t0\t62\t62\n" for number in range(count))
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text(boxes)
    (root / "val" / "images").mkdir(parents=True)
    (root / "val" / "images" / "val_1.JPEG").write_bytes(jpeg((255, 0, 0)))
    (root / "val" / "images" / "val_0.JPEG").write_bytes(jpeg(77))
    lines = "".join(f"{image}\t{wnid}\t0\t32\t44\t62\n" for image, wnid in TEST.items())
    (root / "val" / "val_annotations.txt").write_text(lines)
    (root / "wnids.txt").write_text("\n".join(WNIDS))
    (root / "words.txt").write_text("n01\ta word\n")
    (root / "test" / "images").mkdir(parents=True)
    (root / "test" / "images" / "test_0.JPEG").write_bytes(b"not read: it has no label")


def pack(root: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(root.rglob("*")):
            packed.write(path, f"tiny-imagenet-200/{path.relative_to(root).as_posix()}")


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "tinyimagenet"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path):
    """The unpacked files."""
    write(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_images_have_the_correct_order_labels_and_colours(root, home, tmp_path):
    pack(root, home / ARCHIVE)
    data = load_dataset("tinyimagenet", tmp_path)
    assert data.classes == 3
    assert data.train_labels.tolist() == [0, 0, 0, 1, 1, 2]
    assert data.test_labels.tolist() == [2, 1]
    assert data.train_inputs.shape == (6, 3, 64, 64)
    assert "6 and 2 images in 3 classes" in data.verification
    assert "not checksummed" in data.verification
    colours = [colour(wnid, n) for wnid in WNIDS for n in range(TRAIN[wnid])]
    colours += [(255, 0, 0), (77, 77, 77)]
    inputs = torch.cat([data.train_inputs, data.test_inputs])
    for image, shades in zip(inputs, colours, strict=True):
        for channel, shade in zip(image, shades, strict=True):  # JPEG rounds by a few levels
            assert (channel - (shade / 127.5 - 1)).abs().max() < 4 / 127.5


def test_pixels_are_those_of_the_jpeg(root, home, tmp_path):
    """An image that varies along all axes is read without transposition."""
    steps = np.arange(64)
    picture = np.stack(np.broadcast_arrays(4 * steps[:, None], 2 * steps, steps[:, None]), -1)
    path = root / "train/n02/images/n02_1.JPEG"
    Image.fromarray(picture.astype(np.uint8)).save(path, "JPEG", quality=95)
    decoded = np.asarray(Image.open(path))
    pack(root, home / ARCHIVE)
    image = load_dataset("tinyimagenet", tmp_path).train_inputs[1]
    for row, column, channel in ((0, 5, 0), (60, 5, 0), (3, 60, 1), (60, 3, 1), (63, 0, 2)):
        byte = decoded[row, column, channel]
        assert image[channel, row, column] == pytest.approx(byte / 127.5 - 1, abs=1e-6)


def damage(name):
    """A change that damages the files, and the expected message."""
    image = "train/n01/images/n01_1.JPEG"

    def annotate(text):
        return lambda root: (root / "val/val_annotations.txt").write_text(text)

    def put(path, content):
        return lambda root: (root / path).write_bytes(content)

    def unknown_class(root):
        shutil.copytree(root / "train/n01", root / "train/n09")

    def empty_class(root):
        shutil.rmtree(root / "train/n03/images")

    return {
        "no annotations": (
            lambda root: (root / "val/val_annotations.txt").unlink(),
            r"has no val/val_annotations.txt\. Download it again",
        ),
        "a class without images": (empty_class, r"class n03 has no images in train/n03/images/"),
        "a class that is not in wnids.txt": (unknown_class, r"1 folders of classes .* e\.g\. n09"),
        "no classes": (put("wnids.txt", b"\n"), r"wnids.txt contains no classes"),
        "a class twice": (put("wnids.txt", b"n01\nn02\nn01\nn03\n"), "contains n01 more than once"),
        "a training image missing": (
            lambda root: (root / image).unlink(),
            r"has no train/n01/images/n01_1.JPEG, which train/n01/n01_boxes.txt names \(1 such",
        ),
        "an unknown class in validation": (
            annotate("val_1.JPEG\tn03\nval_0.JPEG\tn07\n"),
            r"annotation 2: class 'n07' of val_0.JPEG is not in wnids.txt",
        ),
        "an annotation without a class": (annotate("val_1.JPEG\n"), "annotation 1: class ''"),
        "an image annotated twice": (
            annotate("val_1.JPEG\tn03\nval_1.JPEG\tn01\n"),
            "annotation 2: val_1.JPEG appears twice",
        ),
        "a validation image missing": (
            annotate("val_1.JPEG\tn03\nval_0.JPEG\tn01\nval_2.JPEG\tn01\n"),
            r"has no val/images/val_2.JPEG, which val/val_annotations.txt names",
        ),
        "a validation image without label": (
            annotate("val_1.JPEG\tn03\n"),
            r"does not name val/images/val_0.JPEG \(1 such",
        ),
        "wrong size": (put(image, jpeg((1, 2, 3), (64, 63))), "n01_1.JPEG is 64x63, expected"),
        "truncated": (put(image, jpeg(colour("n01", 1))[:-200]), "n01_1.JPEG is not a JPEG or is"),
        "not an image": (put(image, b"<html>"), "n01_1.JPEG is not a JPEG or is damaged"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "no annotations",
        "a class without images",
        "a class that is not in wnids.txt",
        "no classes",
        "a class twice",
        "a training image missing",
        "an unknown class in validation",
        "an annotation without a class",
        "an image annotated twice",
        "a validation image missing",
        "a validation image without label",
        "wrong size",
        "truncated",
        "not an image",
    ],
)
def test_damage_is_named(name, root, home, tmp_path):
    do, message = damage(name)
    do(root)
    pack(root, home / ARCHIVE)
    with pytest.raises(DataError, match=message):
        load_dataset("tinyimagenet", tmp_path)


def test_a_damaged_zip_is_named(root, home, tmp_path):
    archive = home / ARCHIVE
    pack(root, archive)
    content = archive.read_bytes()
    archive.write_bytes(content[:-100])
    with pytest.raises(DataError, match=r"tiny-imagenet-200.zip cannot be opened .* Download it"):
        load_dataset("tinyimagenet", tmp_path)
    at = content.index(jpeg(colour("n03", 0))) + 300
    archive.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(DataError, match=r"n03_0.JPEG cannot be read \(Bad CRC-32"):
        load_dataset("tinyimagenet", tmp_path)


def test_absent_files_are_explained(home, tmp_path, monkeypatch):
    """The error gives the download address; there is no download without a published checksum."""
    address = r"http://cs231n\.stanford\.edu/tiny-imagenet-200\.zip"
    with pytest.raises(DataError, match=rf"no tiny-imagenet-200.zip.*not downloaded.*{address}"):
        load_dataset("tinyimagenet", tmp_path)
    with pytest.raises(DataError, match=rf"needs a folder 'tinyimagenet'.*Download .*{address}"):
        load_dataset("tinyimagenet", tmp_path / "elsewhere")
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError, match=rf"cache/tinyimagenet has no .*{address}"):
        load_dataset("tinyimagenet")


def test_progress_is_drawn_on_terminals_only(root, home, tmp_path):
    pack(root, home / ARCHIVE)
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        load_tiny_imagenet(tmp_path, console)
        drawn = console.file.getvalue()
        assert ("8/8" in drawn) == terminal
        assert bool(drawn) == terminal
