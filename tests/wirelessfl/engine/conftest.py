"""Fixtures for schedules of clients that come and go."""

import pytest


@pytest.fixture
def stays(tmp_path):
    """Factory of a file from rows of client, begin and end."""

    def make(*rows):
        file = tmp_path / "stays.csv"
        lines = [",".join(map(str, row)) for row in rows]
        file.write_text("\n".join(["client,begin,end", *lines]) + "\n")
        return file

    return make
