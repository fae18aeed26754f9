"""``python -m tests.product``: run every combination and write docs/reference/combinations.md."""

import sys
from dataclasses import replace
from pathlib import Path

from rich.progress import track

from tests.product.combinations import by_seconds, by_votes, combinations, table
from tests.product.running import wrong

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "combinations.md"


def main() -> int:
    """Run all combinations and write the page; returns 1 if a run or a refusal is wrong."""
    every = combinations()
    valid = [c for c in every if c.refusal() is None]
    every += [c.compressed for c in valid]
    every += [replace(c, devices="mixed") for c in valid]
    every += [replace(c, limited=True) for c in valid]
    every += by_seconds() + by_votes()
    shown = track(every, "combinations", disable=not sys.stderr.isatty())
    bad = [f"{combination}: {found}" for combination in shown if (found := wrong(combination))]
    page = table(combinations())
    PAGE.write_text(page, encoding="utf-8")
    print(page)
    print(*bad, sep="\n")
    print(f"{len(every) - len(bad)} of {len(every)} combinations are correct", file=sys.stderr)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
