"""Reads HTML in tests: elements in order with their attributes and text. Knows no pages."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img"}


@dataclass
class Element:
    """One element. `text` is all the text inside of it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, inside=[e.tag for e in self.open])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1].tag == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def elements(html: str) -> list[Element]:
    """Return every element of well-formed HTML; an AssertionError says where it is not."""
    reader = _Reader()
    reader.feed(str(html))
    reader.close()
    assert not reader.open, f"left open: {reader.open}"
    return reader.elements


def find(html: str, **attributes: str) -> list[Element]:
    """Return the elements with these attributes; `data_event` stands for data-event."""
    wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return [e for e in elements(html) if wanted.items() <= e.attributes.items()]


def figure(html: str, name: str) -> str:
    """Return the raw value of the first figure with this name."""
    return find(html, data_figure=name)[0].attributes["data-value"]
