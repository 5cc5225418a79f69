"""Reads the text and the tables of a page."""

from html.parser import HTMLParser


class Reader(HTMLParser):
    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)


class Tables(HTMLParser):
    """The tables of a page: for each the rows, each a list of (text, classes) of its cells."""

    def __init__(self, text: str):
        super().__init__()
        self.tables: dict[str, list[list[list[str]]]] = {}
        self.colours: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        if tag == "table":
            if "aria-labelledby" in own:  # the ranking is left to the script
                self.rows = self.tables.setdefault(own["aria-labelledby"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append([own.get("class") or ""])
            self.inside = True
        elif tag == "span" and self.inside and "style" in own:
            self.colours.append(own["style"])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.inside and data.strip():
            self.rows[-1][-1].append(data.replace("\u2060", ""))
