"""The site in a real browser, from files: Debian's Chromium (`nox -s browser`)."""

import re
from urllib.parse import parse_qs, urldefrag

import pytest

from reports.site.build import ROOT
from tests.reports.anatomy.test_steps import WALK_THROUGH
from tests.reports.site.test_site import MOST_BYTES, broken
from tests.reports.test_browser import CONTRAST

pytestmark = pytest.mark.browser


@pytest.fixture
def at(chromium, site):
    """Opens a page of the site; in the end nothing may have gone wrong or been asked for."""
    contexts, problems, requests = [], [], []

    def visit(name, width=1280, scheme="light", motion="no-preference"):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion=motion
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{site.as_uri()}/{name}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert problems == []
    inside = (site.as_uri(), "data:", "about:")
    assert [url for url in requests if not url.startswith(inside)] == []


def pages_of(site):
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways(at, site, width):
    for name in pages_of(site):
        page = at(name, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.context.close()


# What is written on a slot that holds timers stands on the colour of such slots, not of the page.
ON_PAGE = CONTRAST.replace(":not(.symbol)", ":not(.symbol, .on)")
ON_SLOT = CONTRAST.replace("behind(element)", "rgba(getComputedStyle(held).fill)")
ON_SLOT = ON_SLOT.replace("body *:not(.symbol)", ".on").replace(
    "const poor", "const held = document.querySelector('.held'); const poor"
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(at, site, scheme):
    for name in pages_of(site):
        page = at(name, scheme=scheme)
        assert page.evaluate(ON_PAGE) == [], name
        if name == "wheels.html":
            assert page.locator(".on").count() and page.evaluate(ON_SLOT) == []
        page.context.close()


def test_the_start_answers_and_leads_on(at):
    page = at("index.html")
    assert page.inner_text("h1:visible") == "Which structure should hold your timeouts?"
    assert page.locator("#case").locator("select, input").count() > 2
    assert page.locator("#verdict").inner_text() and not page.locator("#times").count()
    shown = page.locator(".start-end img")
    shown.scroll_into_view_if_needed()
    assert shown.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


def test_another_machine_is_chosen(at):
    page = at("index.html")
    page.click(".site a:has-text('Answer')")
    choice = page.locator(".site select")
    titles = choice.locator("option").all_inner_texts()
    assert len(titles) == 2 and titles[0].startswith("Other CPU, 8 cores")
    assert "Other CPU" in page.inner_text("#measured")
    with page.expect_navigation():
        choice.select_option(index=1)
    assert "Example CPU" in page.inner_text("#measured")
    assert page.locator(".site select option:checked").inner_text() == titles[1]


# ---- the whole site, once `nox -s site` has written it


BUILT = ROOT / "build" / "site"
NEEDS_BUILT = pytest.mark.skipif(
    not (BUILT / "docs" / "search.html").is_file(), reason="nox -s site has not been run"
)


@NEEDS_BUILT
def test_the_whole_site_is_small_and_its_links_lead_somewhere():
    # Sphinx checks its own links; these are the ones between the site and the documentation.
    pages = [link for link in broken(BUILT, docs=True) if not link.startswith("docs/")]
    assert pages == []
    assert sum(path.stat().st_size for path in BUILT.rglob("*") if path.is_file()) < MOST_BYTES


@NEEDS_BUILT
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_of_the_documentation_scrolls_sideways_or_asks_another_host(chromium, width):
    page, requests = chromium.new_page(viewport={"width": width, "height": 900}), []
    page.on("request", lambda request: requests.append(request.url))
    for path in sorted((BUILT / "docs").rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.goto(f"{(BUILT / 'docs' / 'search.html').as_uri()}?q=cascade")
    page.locator("#search-results li a").first.wait_for()
    page.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


# ---- the wheels


def address(page):
    return {name: value for name, [value] in parse_qs(urldefrag(page.url)[1]).items()}


def test_the_walk_through_by_keys_and_in_the_address(at):
    page = at("wheels.html")
    told = {}
    for moment in WALK_THROUGH:
        told[int(address(page)["at"])] = page.inner_text("#said")
        assert address(page)["at"] == str(moment)
        page.keyboard.press("ArrowRight")
    assert told == WALK_THROUGH
    assert page.is_disabled("#step") and page.is_disabled("#last")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#said") == WALK_THROUGH[521]
    page.reload()  # the address has the moment
    assert page.inner_text("#said") == WALK_THROUGH[521]
    page.keyboard.press("Home")
    assert "at" not in address(page)
    page.keyboard.press("End")
    assert page.inner_text("#said") == WALK_THROUGH[522]
    assert page.locator("#costs tbody tr").count() == 5
    assert "not possible: a delay of 88 is too long: it reaches 10" in page.inner_text("#costs")
    page.fill("#slots", "600")
    page.keyboard.press("Tab")
    assert "not possible" not in page.inner_text("#costs")


def test_keys_scroll_again_below_the_wheel(at):
    page = at("wheels.html")
    page.locator("#lesson").scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.querySelector('#lesson').offsetTop)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#said") == WALK_THROUGH[0]
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#said") == WALK_THROUGH[9]


def test_timers_are_started_touched_and_cancelled(at):
    page = at("wheels.html")
    page.click("text=Empty")
    page.fill("#delay", "7")
    page.click("#start")
    page.click("#start")
    page.fill("#delay", "30")
    page.select_option("#pending", "1")
    page.click("#touch")
    assert page.locator("#pending option").all_inner_texts() == ["7 (timer 0)", "30 (timer 1)"]
    page.select_option("#pending", "0")
    page.click("#cancel")
    assert page.locator("#pending option").all_inner_texts() == ["30 (timer 1)"]
    assert address(page)["load"] == "s0-0-7.s0-1-7.a0-1-30.c0-0"
    page.click("#last")
    assert page.inner_text("#said").endswith("30 fires.")
    link = page.url
    other = at("results.html")
    other.goto(link)  # somebody else opens the link
    assert other.inner_text("#said") == page.inner_text("#said")
    page.fill("#delay", "-1")
    page.click("#start")
    assert "The delay must be a whole number from 0" in page.inner_text("#problem")


def test_a_bad_address_is_told_and_harms_nothing(at):
    page = at("wheels.html#timer=none&slots=1e9&tick=&load=x1-2&at=NaN")
    assert page.inner_text("#problem") == '"x1-2" is not an operation.'
    assert page.input_value("#timer") == "hierarchical-wheel"
    assert page.input_value("#slots") == "10"
    assert page.inner_text("#said") == WALK_THROUGH[0]


def test_a_log_stays_in_the_tab(at):
    page = at("wheels.html")
    page.fill("#log", "start,duration,timeout\n10,0.02,0.5\n10.004,,0.1")
    page.click("#use")
    assert address(page)["load"] == "s0-0-500.s4-1-104.c20-0"
    page.fill("#log", "\n".join(f"{k / 100},0.01,0.5" for k in range(2_000)))
    page.click("#use")
    assert "too long for the address" in page.inner_text("#problem")
    assert "load" not in address(page)
    page.fill("#log", "1,oops")
    page.click("#use")
    assert 'Line 1 of the log is "1,oops"' in page.inner_text("#problem")


def test_run_skips_what_would_only_move(at):
    """With reduced motion, the empty ticks of a cascading wheel are not shown one by one."""
    page = at("wheels.html#timer=cascading-wheel&load=walk", motion="reduce")
    page.clock.install()
    for _ in range(40):
        if page.is_disabled("#step"):
            break
        if page.get_attribute("#run", "aria-pressed") == "false":
            page.click("#run")
        page.clock.run_for(1_000)
    assert page.inner_text("#said").endswith("522 fires.")
    assert page.get_attribute("#run", "aria-pressed") == "false"


@pytest.mark.parametrize("name", ["ring", "heap", "hashed-wheel", "cascading-wheel"])
@pytest.mark.parametrize("width", [390, 1280])
def test_drawings_fit_and_can_be_read(at, name, width):
    for load, slots in (("idle", 30), ("burst", 1000), ("walk", 4096)):
        page = at(f"wheels.html#timer={name}&slots={slots}&load={load}&at=0", width)
        assert page.inner_text("#problem") == ""
        inside = page.evaluate("""() => {
            const box = document.querySelector("#drawing").getBoundingClientRect();
            return [...document.querySelectorAll("#drawing text")].filter((text) => {
                const each = text.getBoundingClientRect();
                return each.left < box.left - 1 || each.right > box.right + 1 || each.height < 11;
            }).map((text) => text.textContent);
        }""")
        assert inside == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.context.close()


def test_the_lesson_shows_its_schemes(at):
    page = at("wheels.html")
    for button in page.locator("#lesson button").all():
        button.click()
        assert page.input_value("#timer") == button.get_attribute("data-timer")
        assert page.inner_text("#problem") == ""
    assert len(re.findall(r"^\d\. ", page.inner_text("#lesson"), re.MULTILINE)) == 7
