"""The page of ``wirelessfl report`` in a browser without a network, on wide and narrow screens."""

import shutil

import pytest

import wirelessfl
from wirelessfl.results import Runs

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-component-update".split()
)
pytestmark = [
    pytest.mark.extras,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is absent"),
]
SERIOUS = ("error", "warning", "assert")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page on six runs: two uplinks with two seeds each, and two without positions."""
    root = tmp_path_factory.mktemp("runs")
    common = {"cells": 2, "clients": 6, "rounds": 4, "local_steps": 2, "client_log": True}
    configs = [
        wirelessfl.Config.from_flags("hfedavg", **common, **varied, seed=seed)
        for varied in (
            {"layout": "hexagonal", "uplink": "aircomp"},
            {"layout": "hexagonal", "uplink": "tdma"},
            {"uplink": "tdma"},
        )
        for seed in (1, 2)
    ]
    runs = Runs(wirelessfl.sweep(configs, root=root, jobs=1))
    return runs.report(root / "report.html", targets=[0.2, 0.3])


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser, file):
    """Open the page; whatever it requests or complains about fails the test."""
    contexts, problems = [], []

    def show(size="desktop", scheme="light"):
        width, height = SIZES[size]
        touch = size == "phone"
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=touch,
            is_mobile=touch,
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: problems.append(m.text) if m.type in SERIOUS else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda r: problems.append(r.url) if r.url != file.as_uri() else None)
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]")
        return page

    yield show
    for context in contexts:
        context.close()
    assert [text for text in problems if not text.startswith(("data:", "blob:"))] == []


def shown(page, what, name="curves"):
    """The value of an expression of a figure, ``plot``."""
    return page.evaluate(f"(() => {{ const plot = plots['{name}']; return {what}; }})()")


def test_a_click_toggles_a_curve(opened):
    """All lines of a group, in both figures, and back."""
    page = opened()
    visible = "plot.renderers.map((line) => line.visible)"
    assert all(shown(page, visible))
    button = page.get_by_role("button", name="uplink aircomp")
    before = page.screenshot()
    button.click()
    lines = shown(
        page, "plot.renderers.map((line) => [line.name.includes('aircomp'), line.visible])"
    )
    assert sorted(map(tuple, lines)) == [(False, True)] * 6 + [(True, False)] * 3
    assert not any(shown(page, visible, "air"))
    assert button.get_attribute("aria-pressed") == "false"
    page.wait_for_timeout(200)
    assert page.screenshot() != before
    for other in page.locator(".keys button").all():
        other.click()
    assert shown(page, visible).count(True) == 3
    for other in page.locator(".keys button").all()[1:]:
        other.click()
    assert all(shown(page, visible))


def test_axes_change_the_data(opened):
    """Each choice shows another field, with its title, on ranges that fit."""
    page = opened()
    seen = {}
    for label, field in (("rounds", "round"), ("joules", "joules"), ("MiB", "uplink_mib")):
        page.get_by_text(label, exact=True).first.click()
        page.wait_for_timeout(200)
        assert shown(page, "plot.renderers[0].glyph.x.field") == field
        assert shown(page, "plots.air.renderers[0].glyph.x.field") == field
        seen[label] = shown(page, "[plot.below[0].axis_label, plot.x_range.end]")
    assert seen["rounds"][0] == "global round"
    assert 4 < seen["rounds"][1] < 5
    assert len({title for title, _ in seen.values()}) == 3
    page.get_by_text("loss", exact=True).first.click()
    names = shown(page, "plot.renderers.map((line) => line.glyph.y.field)")
    assert {*names} == {"loss", "uplink_mib loss"}
    assert shown(page, "plot.left[0].axis_label") == "test loss"


def test_zoom_and_reset(opened):
    """A dragged box becomes the ranges; reset returns to all data."""
    page = opened()
    box = page.locator("#plot-curves").bounding_box()
    whole = shown(page, "[plot.x_range.start, plot.x_range.end]")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_timeout(200)
    zoomed = shown(page, "[plot.x_range.start, plot.x_range.end]")
    assert whole[0] < zoomed[0] < zoomed[1] < whole[1]
    assert zoomed[1] - zoomed[0] < 0.5 * (whole[1] - whole[0])
    page.locator("#plot-curves").get_by_title("Reset").click()
    page.wait_for_timeout(200)
    assert shown(page, "[plot.x_range.start, plot.x_range.end]") == pytest.approx(whole)


def test_another_run_has_other_clients(opened, file):
    """A run with positions has a map, one without has bars; lines are those of its log."""
    page = opened()
    assert page.locator("#mapped").is_visible()
    assert not page.locator("#barred").is_visible()
    first = shown(page, "[...plot.renderers[0].data_source.data.snr]", "map")
    options = page.locator("#run option")
    titles = [options.nth(place).text_content() for place in range(options.count())]
    assert len(titles) == 6
    page.select_option("#run", "1")
    assert shown(page, "[...plot.renderers[0].data_source.data.snr]", "map") != first
    layouts = [facts["columns"].keys() for facts in page.evaluate("facts.clients")]
    page.select_option("#run", str(next(n for n, keys in enumerate(layouts) if "x" not in keys)))
    assert page.locator("#barred").is_visible()
    assert not page.locator("#mapped").is_visible()
    assert "a round takes" in page.locator("#lines").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_fits_and_can_be_read(opened, size, scheme):
    """No horizontal scroll; axes and lines have the colours of the scheme."""
    page = opened(size, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
    text = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--text')")
    assert shown(page, "plot.below[0].axis_label_text_color") == text
    colours = shown(
        page, "plot.renderers.map((line) => [line.glyph.line_color.value, ...line.tags])"
    )
    for colour, _, _, light, dark, _ in colours:
        assert colour == (dark if scheme == "dark" else light)
    for name in ("curves", "air", "taking-part", "map"):
        box = page.locator(f"#plot-{name}").bounding_box()
        assert 0.8 * min(SIZES[size][0], 640) < box["width"] <= SIZES[size][0]


def test_the_scheme_follows_the_reader(opened):
    """A change while the page is open changes the figures too."""
    page = opened()
    light = shown(page, "plot.renderers[0].glyph.line_color.value")
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(100)
    assert shown(page, "plot.renderers[0].glyph.line_color.value") != light
