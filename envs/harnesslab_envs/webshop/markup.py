"""Text out of HTML, as descriptions hold it."""

from __future__ import annotations

from html.parser import HTMLParser


def plain(text: str) -> str:
    """The text without tags, entities written out, each run of blanks as one."""
    if "<" not in text and "&" not in text:
        return " ".join(text.split())
    reader = _Tags()
    reader.feed(text)
    reader.close()
    return " ".join("".join(reader.found).split())


class _Tags(HTMLParser):
    """Keeps what is between tags, but no scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag parts words."""
        self._hidden = tag in ("script", "style")
        self.found.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """So does its end."""
        self._hidden = False
        self.found.append(" ")

    def handle_data(self, data: str) -> None:
        """What a reader sees."""
        if not self._hidden:
            self.found.append(data)
