"""Reads the tags, the text and the tables of a page."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """What a page has, once it is clear that all of its tags are closed."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tables: dict[str, list[list[list[str]]]] = {}
        """By the label: for each the rows, each a list of [classes, *texts] of its cells."""
        self.colours: list[str] = []  # of symbols in tables
        self.feed(page)
        self.close()
        assert self.open == []

    @property
    def text(self):
        """The text on one line, without the marks that keep ranges together."""
        return " ".join(" ".join(self.texts).split()).replace("\u2060", "")

    @property
    def in_cell(self):
        return "td" in self.open or "th" in self.open

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        if tag == "table" and "aria-labelledby" in own:  # the ranking is left to the script
            self.rows = self.tables.setdefault(own["aria-labelledby"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append([own.get("class") or ""])
        elif tag == "span" and self.in_cell and "style" in own:
            self.colours.append(own["style"])
        self.tags.append((tag, own))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)
        if self.in_cell and data.strip():
            self.rows[-1][-1].append(data.replace("\u2060", ""))
