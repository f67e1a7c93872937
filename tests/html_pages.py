"""A strict parser for CodeHub's HTML pages."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

from proxy.transport.routing import Response

VOID = {"meta", "link", "input", "path", "circle", "rect"}


@dataclass
class Element:
    """An element with its children; `text` includes theirs."""

    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str | None = None) -> Iterator["Element"]:
        for child in self.children:
            if tag in {None, child.tag}:
                yield child
            yield from child.all(tag)

    def one(self, tag: str) -> "Element":
        (found,) = self.all(tag)
        return found


class Reader(HTMLParser):
    """Parses a page; every element must be closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read(response: Response) -> Element:
    return read_text(response.body.decode())


def read_text(text: str) -> Element:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root


def text_of(element: Element) -> str:
    return " ".join(element.text.split())


def fields(form: Element) -> dict[str, str]:
    return {each.attributes["name"]: each.attributes["value"] for each in form.all("input")}


def visible_states(page: Element) -> list[str]:
    """Return the states whose sections are visible."""
    return [each.attributes["data-state"] for each in page.all("section") if "hidden" not in each.attributes]
