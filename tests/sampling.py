"""``pytest --sample``: some cases of the tests that are marked ``thorough``.

``make test`` runs this sample, and ``make test-all`` runs every case. A test is marked if its cases
take long and differ in few of the lines that they execute:

- ``@pytest.mark.thorough(every=8)``: one case of eight, at least one;
- ``@pytest.mark.thorough``: none. Other tests execute the same code.

A sample is random but always the same: cases are ordered by a hash of their names. Hypothesis tries
a quarter of the examples in it (tests/conftest.py).
"""

import zlib
from collections import defaultdict


def left_out(items):
    """The tests that a sample leaves out.

    Args:
        items: all collected tests, of which the cases of a test are a family.
    """
    families = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("thorough")
        if mark is not None:
            every = mark.kwargs.get("every")
            families[item.path, item.cls, getattr(item, "originalname", item.name), every].append(
                item
            )
    return {
        item
        for (*_, every), cases in families.items()
        for item in _in_order(cases)[0 if every is None else -(-len(cases) // every) :]
    }


def _in_order(cases):
    """Cases by the hash of their names: neighbours in a table of parameters are far apart."""
    return sorted(cases, key=lambda item: (zlib.crc32(item.name.encode()), item.name))
