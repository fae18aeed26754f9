"""Positions from CSV files."""

import numpy as np
import pytest

from channels import FileLayout, Stream

GOOD = "kind,x_m,y_m\nbase_station,0,0\nclient,300,1\nbase_station,400,0\nclient,30,40\n"


@pytest.fixture
def layout(tmp_path):
    """Write a file and return its layout."""

    def write(text):
        path = tmp_path / "positions.csv"
        path.write_text(text, encoding="utf-8")
        return FileLayout(path)

    return write


def test_clients_belong_to_the_nearest_base_station(layout):
    where = layout(GOOD).place(None, None, Stream(1))
    np.testing.assert_array_equal(where.base_stations_m, [[0, 0], [400, 0]])
    np.testing.assert_array_equal(where.clients_m, [[30, 40], [300, 1]])
    assert where.cell_of.tolist() == [0, 1]
    assert where.given_as.tolist() == [1, 0]
    assert where.distance_m.tolist() == [50, np.hypot(100, 1)]


def test_a_cell_may_be_given(layout):
    """Columns in any order, with spaces, a byte order mark and cells for some clients."""
    text = "\ufeffy_m, x_m ,cell,kind\n0,0,,base_station\n0,400,,base_station\n"
    where = layout(text + "0,50,1,client\n0, 60,,client\n").place(2, 2, Stream(1))
    assert where.cell_of.tolist() == [0, 1]
    assert where.clients_m[:, 0].tolist() == [60, 50]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column kind among none"),
        ("kind,x_km,y_km\n", "no column x_m among kind, x_km, y_km.*in metres"),
        ("kind,x_m,lat\n", "no column y_m"),
        (GOOD + "client,1e2,east\n", "line 6: y_m is 'east'. Give a number of metres"),
        (GOOD + "client,1e2\n", "line 6: y_m is ''"),
        (GOOD + "client,nan,1\n", "line 6: x_m is 'nan'"),
        (
            "kind,x_m,y_m,interference_watts\nbase_station,0,0,1e-13\nclient,30,40,\n",
            "line 2: interference_watts is that of a client",
        ),
        (
            "kind,x_m,y_m,interference_watts\nbase_station,0,0,\nclient,30,40,loud\n",
            "line 3: interference_watts is 'loud'. Give a number of watts",
        ),
        (
            "kind,x_m,y_m,interference_watts\nbase_station,0,0,\nclient,9,40,\nclient,1,9,0\n",
            "line 4: interference_watts is given for some clients. Give it for all or none",
        ),
        (GOOD + "user,1,2\n", "line 6: kind is 'user'. Give base_station or client"),
        ("kind,x_m,y_m\nclient,1,2\n", "no row of kind base_station"),
        ("kind,x_m,y_m\nbase_station,1,2\n", "no row of kind client"),
        (GOOD + "base_station,9999,0\n", "cell 2 has no client"),
        (
            "kind,x_m,y_m,cell\nbase_station,0,0,\nclient,30,40,1\n",
            "line 3: cell is '1'. Give 0 to 0",
        ),
        (
            "kind,x_m,y_m\nbase_station,11.5,48.1\nclient,11.6,48.2\n",
            "no client is farther than 0.14.*kilometres or degrees",
        ),
    ],
)
def test_errors_name_file_and_line(layout, text, message):
    with pytest.raises(ValueError, match=rf"positions\.csv.*{message}"):
        layout(text).place(None, None, Stream(1))


def test_other_numbers_are_refused(layout):
    with pytest.raises(ValueError, match=r"cells is 3, and .* has 2 rows of kind base_station"):
        layout(GOOD).place(3, None, Stream(1))
    with pytest.raises(ValueError, match=r"clients is 3, and .* has 2 rows of kind client"):
        layout(GOOD).place(None, 3, Stream(1))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.csv: cannot be read as CSV: No such file"):
        FileLayout(str(tmp_path / "nowhere.csv")).place(None, None, Stream(1))
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"binary\.csv: cannot be read as CSV"):
        FileLayout(str(path)).place(None, None, Stream(1))
    with pytest.raises(ValueError, match="path is empty"):
        FileLayout("")
    with pytest.raises(TypeError, match="path is 3"):
        FileLayout(3)


def test_cells_take_bands_in_turn():
    assert FileLayout("x").bands(5, 2).tolist() == [0, 1, 0, 1, 0]
