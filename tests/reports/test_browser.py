"""The page in a real browser: Debian's Chromium, driven by Playwright (`nox -s browser`)."""

import pytest

from tests.reports.by_hand import COSTS
from tests.words import plain

pytestmark = pytest.mark.browser


def test_a_chart_without_the_legend_of_the_page_tells_whose_value_it_is(opened):
    page = opened()
    page.evaluate("document.getElementById('overload').closest('details').open = true")
    chart = page.locator("#chart-overload .chart")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    tip = plain(page.inner_text("#tip"))
    assert tip == "uvloop\n105 % of its capacity, 840 000 calls/s: 100 ms"
    assert not page.query_selector_all(".faint")


def test_tables_sort_and_show_the_chosen_columns(opened):
    page = opened()
    assert page.locator("#table-times thead th:visible").all_inner_texts() == [
        "timer",
        "Insert",
        "Cancel and insert",
        "Expiry, event-driven",
    ]
    expiry = page.locator("#table-times thead button:visible").nth(3)
    names = page.locator("#table-times tbody th")
    order = ["hashed-wheel", "hierarchical-wheel", "hierarchical-wheel", "hashed-wheel"]
    order += ["cascading-wheel", "delay-queue"]

    def sorted_names():
        return [text.split("\n")[0].split("\ufe0e")[-1] for text in names.all_inner_texts()]

    expiry.click()
    assert sorted_names() == [*order, "unordered-list"]  # it was over budget
    expiry.press("Enter")
    assert sorted_names() == [*order[::-1], "unordered-list"]
    cell = page.locator("#table-times thead th:visible").nth(3)
    cell.click(position={"x": 2, "y": 2})  # beside the text
    assert sorted_names() == [*order, "unordered-list"]
    expiry.press("Enter")
    sorts = page.locator("#table-times [aria-sort]")
    assert [sorts.count(), sorts.get_attribute("aria-sort")] == [1, "descending"]
    page.select_option("#table-times [data-facet=operation]", label="Cancel and insert")
    page.select_option("#table-times [data-facet=size]", "")
    page.select_option("#table-times [data-facet=statistic]", label="greatest [ns]")
    heads = page.locator("#table-times thead th:visible").all_inner_texts()
    assert list(map(plain, heads)) == ["timer", "N = 1 000", "N = 100 000"]
    first = page.locator("#table-times tbody tr").first.locator("td:visible").all_inner_texts()
    assert first == ["20.8", "62.4"]
    name = page.locator("#table-times thead button:visible").first
    for backwards in (False, True):
        name.click()
        assert sorted_names() == sorted(sorted_names(), reverse=backwards)
    assert sorts.count() == 1


def test_a_row_without_figures_in_the_chosen_columns_is_left_out(opened):
    page = opened()
    row = page.locator("#table-times tbody tr", has_text="delay-queue")
    assert row.is_visible()
    row.evaluate(
        """row => {
            const heads = [...row.closest("table").rows[0].cells].map(cell => cell.textContent);
            [...row.cells].slice(1).forEach((cell, i) => {
                if (/N.=.100.000/.test(heads[i + 1])) cell.textContent = "–\\u2060";
            });
        }"""
    )
    page.locator("#table-times select").first.evaluate(
        "select => select.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    assert row.is_hidden()
    page.select_option("#table-times [data-facet=size]", index=1)
    assert row.is_visible()


@pytest.mark.parametrize("width", [1400, 900, 390])
def test_the_legend_shows_every_timer_and_stays_in_sight(opened, width):
    page = opened("full", width=width)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight / 2)")
    boxes = [button.bounding_box() for button in page.locator(".legend button").all()]
    assert len(boxes) > 9
    for box in boxes:
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert 0 <= box["y"] <= 250


def test_the_legend_filters_and_lets_stand_out_everywhere(opened):
    page = opened("full")
    button = page.locator(".legend button", has_text="delay-queue").nth(1)
    series = button.get_attribute("data-series")
    mine = page.locator(f"svg [data-series='{series}']")
    others = page.locator(f"svg [data-series]:not([data-series='{series}'])")
    faint = "of => of.every(one => one.classList.contains('faint'))"
    some = "of => of.some(one => one.classList.contains('faint'))"
    out = "of => of.every(one => one.classList.contains('out'))"
    page.mouse.move(0, 0)
    for begin, end in (
        (button.focus, button.blur),
        (button.hover, lambda: page.mouse.move(0, 0)),
    ):
        begin()
        assert others.evaluate_all(faint) and not mine.evaluate_all(some) and mine.evaluate_all(out)
        assert not page.locator(".legend button").evaluate_all(some)
        assert page.locator(
            f"#table-times [data-series]:not([data-series='{series}'])"
        ).evaluate_all(faint)
        end()
        assert not page.locator(".faint, .out").count()
    button.focus()
    assert mine.evaluate_all("of => new Set(of.map(one => one.closest('figure').id)).size") >= 12
    button.press("Enter")
    gone = "of => of.every(one => getComputedStyle(one).display === 'none')"
    assert button.get_attribute("aria-pressed") == "false"
    assert mine.evaluate_all(gone) and not others.evaluate_all(gone)
    assert page.locator(f"#table-times tr[data-series='{series}']").is_hidden()
    button.click()
    assert not mine.evaluate_all(gone)
    assert page.locator(f"#table-times tr[data-series='{series}']").is_visible()


def test_charts_tell_their_values(opened):
    page = opened()
    chart = page.locator("#chart-time-hold .chart")
    mark = chart.locator("[data-value]").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 6, box["y"] + box["height"] / 2 + 3)
    tip = plain(page.inner_text("#tip"))
    assert tip == "unordered-list\nN = 1 000: 5.00 ns (4.80–5.20)"
    assert page.locator("svg .faint").count() > 10
    page.mouse.move(box["x"] - 8, box["y"] + 12)  # nothing is nearer
    assert plain(page.inner_text("#tip")) == tip
    page.mouse.move(box["x"] - 20, box["y"] + 40)
    assert page.locator("#tip").is_hidden() and not page.locator(".faint").count()
    page.mouse.move(box["x"], box["y"])
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()
    chart.focus()
    page.keyboard.press("ArrowLeft")
    assert plain(page.inner_text("#tip")).split(": ")[0].endswith("\nN = 100 000")  # the last one
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert plain(page.inner_text("#tip")) == "unordered-list\nN = 100 000: 5.00 ns (4.80–5.20)"
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    page.keyboard.press("ArrowRight")
    chart.blur()
    assert page.locator("#tip").is_hidden()
    handled = """(chart, key) => !chart.dispatchEvent(
        new KeyboardEvent("keydown", { key, cancelable: true }))"""
    assert [chart.evaluate(handled, key) for key in ("ArrowRight", "Tab")] == [True, False]
    page.locator(".legend button", has_text="unordered-list").click()
    chart.focus()
    for _ in range(chart.locator("[data-value]").count()):
        page.keyboard.press("ArrowLeft")
        assert "unordered-list" not in page.inner_text("#tip")  # it is hidden


def test_a_tip_stays_in_the_window(opened):
    page = opened(width=390)
    chart = page.locator("#chart-time-hold .chart")
    marks = chart.locator("[data-value]")
    marks.last.evaluate("mark => scrollBy(0, mark.getBoundingClientRect().top - 5)")
    chart.evaluate("chart => chart.focus({ preventScroll: true })")
    for _ in range(marks.count()):
        page.keyboard.press("ArrowRight")
        box = page.locator("#tip").bounding_box()
        assert 0 <= box["x"] <= 390 - box["width"]
    assert 0 <= box["y"] <= 60  # below the last mark


CONTRAST = """() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = rgba(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const element of document.querySelectorAll("body *:not(.symbol)")) {
        const text = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!text || !element.getClientRects().length || element.tagName === "SCRIPT") continue;
        const style = getComputedStyle(element);
        const colours = [element.closest("svg") ? style.fill : style.color].map(rgba);
        const [a, b] = [light(colours[0]), light(behind(element))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(element.outerHTML.slice(0, 120));
    }
    return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, scheme):
    assert opened("full", scheme=scheme).evaluate(CONTRAST) == []


def test_it_is_short_when_it_is_opened(opened):
    page = opened("full")
    # 350 of them are the panel for the settings of a wheel.
    assert page.evaluate("document.documentElement.scrollHeight") <= 4850
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_it_fits_a_phone(opened):
    page = opened("full", width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    head, *rows = page.locator("#ranking tr").all()
    shown = "of => of.filter(one => one.offsetWidth).length"
    assert head.locator("th").evaluate_all(shown) == rows[0].locator("th, td").evaluate_all(shown)
    sizes = page.locator(".chart svg text").evaluate_all(
        "of => of.map(text => parseFloat(getComputedStyle(text).fontSize)"
        " * text.ownerSVGElement.getScreenCTM().a)"
    )
    assert len(sizes) > 50 and min(size for size in sizes if size) >= 11


def test_the_legend_is_at_the_head_of_each_printed_page(opened):
    """A browser repeats what is displayed as the header of a table."""
    page = opened()
    assert page.locator(".key").is_hidden()
    page.emulate_media(media="print")
    key = page.locator(".key")
    assert key.is_visible() and page.locator(".legend").is_hidden()
    assert key.locator("span:not(.symbol)").count() == len(COSTS)
    style = "[...document.querySelectorAll('main, .bar')].map(one => getComputedStyle(one).display)"
    assert page.evaluate(style) == ["table", "table-header-group"]
    box, first = key.bounding_box(), page.locator("main > section").first.bounding_box()
    assert box["y"] < first["y"] and box["height"] < 100


def test_a_link_unfolds_its_section_and_printing_all(opened, tmp_path):
    page = opened("full")
    assert page.locator("#chart-work-insert").is_hidden()
    page.click("nav a[href='#work']")
    page.locator("#chart-work-insert").wait_for()  # visible
    assert page.locator("details[open]").count() == 1
    page.reload()  # the address has the section
    assert page.locator("details[open]").count() == 1
    page.evaluate("addEventListener('beforeprint', () => { window.unfolded = "
                  "document.querySelectorAll('details[open]').length; })")  # fmt: skip
    assert len(page.pdf(format="A4")) > 100_000
    assert page.evaluate("window.unfolded") == page.locator("details").count() == 7
    assert page.locator("details[open]").count() == 1
