"""Pages are short, and their images have texts for readers who do not see them."""

import re

import pytest

from tests.docs.pages import PAGES

LONGEST = 2000
"""Words of a page, as a reader counts them: without code, comments and targets of links."""


def words(text):
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|<[^>]+>", " ", text)
    return len(re.findall(r"[^\s|]*\w[^\s|]*", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_short(page):
    assert words(page.read_text(encoding="utf-8")) <= LONGEST


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_images_have_texts(page):
    text = page.read_text(encoding="utf-8")
    assert page.name == "README.md" or "<img" not in text, "the site would lack its file"
    images = [*re.findall(r"!\[([^\]]*)\]", text), *re.findall(r"<img [^>]*?>", text)]
    texts = [(re.findall(r'alt="([^"]*)"', one) or [one])[0] for one in images]
    assert [one for one in texts if len(one) < 20 or one.startswith("<")] == []
