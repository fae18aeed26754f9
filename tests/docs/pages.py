"""The README and the pages under docs/, and the blocks of code in them."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
GUIDES = ROOT / "docs" / "guides"
BLOCK = re.compile(
    r"^```(python|toml|yaml|text)?( file=(\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def blocks(page):
    """Language, file name and text of each block of a page."""
    return [(m[1], m[3], m[4]) for m in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def run_blocks(page):
    """Write the files of a page to the current folder, and run its examples there."""
    for language, file, code in page:
        if file:
            Path(file).write_text(code)
        elif language == "python":
            Path("example.py").write_text(code)
            runpy.run_path("example.py")
