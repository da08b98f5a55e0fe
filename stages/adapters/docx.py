"""DOCX: the text of a word-processing document in reading order, page by page.

Tracked insertions are kept, deletions dropped. Pages are those that Word saw when it last saved the file,
and explicit page breaks; a file without either is one page.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lxml import etree

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits, LimitName
from schema.wire.results import PageSource
from stages.adapters.clean import clean
from stages.adapters.numbering import VAL, Numbering, W, read_numbering
from stages.adapters.package import Package
from stages.adapters.pages import PageText
from stages.adapters.source import Source
from stages.adapters.text import split_long

_R_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MAX_ROW_CELL_CHARS: Final = 300
_OFF: Final = frozenset({"0", "false", "off"})
_SKIPPED: Final = frozenset({
    "del", "moveFrom", "delText", "instrText", "delInstrText", "rPr", "pPr", "sdtPr", "sdtEndPr", "tblPr",
    "tblGrid", "trPr", "tcPr", "sectPr", "rt", "fldData", "commentRangeStart", "commentRangeEnd",
})  # fmt: skip

PAGE_BREAK: Final = None
"""Stands in a list of lines where a page ends."""

Lines = list[str | None]


class DocxReader:
    """A DOCX opened for reading."""

    def __init__(self, source: Source, limits: DocumentLimits) -> None:
        """Read the whole document.

        Raises:
            PermanentError: ``unsupported_type``, ``password_required``, ``corrupt_document``,
                ``archive_bomb`` or ``too_many_pages``.
        """
        package = Package(source, limits)
        try:
            lines = Story(package).lines()
        finally:
            package.close()
        self._pages = [part for page in paginate(lines) for part in split_long(page, limits.max_page_chars)]
        if self.pages > limits.max_pages:
            raise PermanentError(
                ErrorCode.TOO_MANY_PAGES, limit=limits.max_pages, actual=self.pages, limit_name=LimitName.PAGES
            )

    @property
    def pages(self) -> int:
        """How many pages there are; an empty document has one."""
        return len(self._pages)

    def read(self, number: int) -> PageText:
        """Return one page."""
        return PageText(PageSource.DOCX, clean(self._pages[number - 1]))

    def attachments(self) -> list[dict[str, str]]:
        """Return nothing: invoices come inside PDFs."""
        return []

    def close(self) -> None:
        """Let go of the text."""
        self._pages = []


class Story:
    """Walks a document's parts and collects its lines."""

    def __init__(self, package: Package) -> None:
        """Open the main part and what it relates to."""
        main = package.main_part()
        root = package.xml(main)
        body = None if root is None else root.find(f"{W}body")
        if body is None:
            raise PermanentError(ErrorCode.CORRUPT_DOCUMENT)
        self._package = package
        self._body = body
        self._relationships = package.relationships(main)
        self._numbering = self._read_numbering(main)
        self._notes = {kind: self._read_notes(main, kind) for kind in ("footnote", "endnote")}
        self._sections = list(body.iter(f"{W}sectPr"))
        self._section = 0
        self._said: set[str] = set()
        self._lines: Lines = []
        self._line: list[str] = []
        self._label = ""
        self._boxes: list[etree._Element] = []
        self._footnotes: list[str] = []
        self._endnotes: list[str] = []
        self._handlers: dict[str, Callable[[etree._Element], None]] = {
            "p": self._paragraph,
            "r": self._run,
            "t": self._text,
            "tab": lambda _: self._line.append("\t"),
            "br": self._line_break,
            "cr": self._line_break,
            "noBreakHyphen": lambda _: self._line.append("-"),
            "lastRenderedPageBreak": self._rendered_page_break,
            "txbxContent": self._boxes.append,
            "AlternateContent": self._alternatives,
            "tbl": self._table,
            "tr": self._row,
            "footnoteReference": self._note,
            "endnoteReference": self._note,
        }

    def lines(self) -> Lines:
        """Return all lines, with ``PAGE_BREAK`` between pages."""
        self._margin("header")
        self._walk(self._body)
        self._flush_line()
        self._flush_notes("footnote", self._footnotes)
        self._flush_notes("endnote", self._endnotes)
        self._margin("footer")
        return self._lines

    def _walk(self, element: etree._Element) -> None:
        """Take the children of ``element`` in turn."""
        for child in element:
            name = _name(child)
            if name in _SKIPPED:
                continue
            self._handlers.get(name, self._walk)(child)

    def _paragraph(self, paragraph: etree._Element) -> None:
        """Write a paragraph as a line, then the text boxes anchored in it."""
        properties = paragraph.find(f"{W}pPr")
        if properties is not None and _is_on(properties.find(f"{W}pageBreakBefore")):
            self._break_page()
        self._label = self._numbering.label(properties)
        self._walk(paragraph)
        self._label = ""
        self._end_line()
        boxes = self._boxes[:]
        self._boxes.clear()
        for box in boxes:
            self._walk(box)
        if properties is not None and properties.find(f"{W}sectPr") is not None:
            self._end_section()

    def _run(self, run: etree._Element) -> None:
        """Write a run of text unless it is hidden."""
        properties = run.find(f"{W}rPr")
        if properties is None or not _is_on(properties.find(f"{W}vanish")):
            self._walk(run)

    def _text(self, element: etree._Element) -> None:
        """Write text, after the list number that waits for some."""
        text = element.text or ""
        if self._label and text.strip():
            self._line.append(f"{self._label} ")
            self._label = ""
        self._line.append(text)

    def _line_break(self, element: etree._Element) -> None:
        """Write what a break stands for."""
        if element.get(f"{W}type") == "page":
            self._flush_line()
            self._break_page()
        else:
            self._end_line()

    def _rendered_page_break(self, _: etree._Element) -> None:
        """End the page where Word ended it when it last drew the document."""
        self._flush_line()
        self._break_page()

    def _alternatives(self, element: etree._Element) -> None:
        """Take the first of several versions of the same content that has text: a newer one may be a drawing only."""
        versions = [version for version in element if _name(version) in {"Choice", "Fallback"}]
        for version in versions:
            if version is versions[-1] or next(version.iter("{*}t"), None) is not None:
                self._walk(version)
                return

    def _table(self, table: etree._Element) -> None:
        """Write a table row by row."""
        self._flush_line()
        self._walk(table)

    def _row(self, row: etree._Element) -> None:
        """Write a row as one line of cells parted by tabs, or cell after cell when they hold much text."""
        cells = [self._capture(cell) for cell in _cells(row)]
        texts = [" ".join(line.strip() for line in cell if line) for cell in cells]
        if any(len(text) > _MAX_ROW_CELL_CHARS for text in texts):
            for cell in cells:
                self._lines.extend(cell)
            return
        if any(PAGE_BREAK in cell for cell in cells):
            self._break_page()
        self._lines.append("\t".join(texts).rstrip())

    def _capture(self, element: etree._Element) -> Lines:
        """Walk an element and return its lines instead of writing them."""
        outer, self._lines = self._lines, []
        self._walk(element)
        self._flush_line()
        inner, self._lines = self._lines, outer
        return inner

    def _note(self, element: etree._Element) -> None:
        """Keep a reference: footnotes are written at the page's end, endnotes at the document's."""
        waiting = self._footnotes if _name(element) == "footnoteReference" else self._endnotes
        waiting.append(element.get(f"{W}id", ""))

    def _flush_notes(self, kind: str, waiting: list[str]) -> None:
        """Write the notes referred to since the last time."""
        for note_id in waiting[:]:
            note = self._notes[kind].pop(note_id, None)
            if note is not None:
                self._walk(note)
        waiting.clear()

    def _end_line(self) -> None:
        """Write the line so far; an empty one parts paragraphs."""
        line, self._line = "".join(self._line).rstrip(), []
        if line or (self._lines and self._lines[-1]):
            self._lines.append(line)

    def _flush_line(self) -> None:
        """Write the line so far, if there is one."""
        if "".join(self._line).strip():
            self._end_line()

    def _break_page(self) -> None:
        """Begin a new page, unless the present one is still empty."""
        if self._footnotes:
            self._flush_notes("footnote", self._footnotes)
        self._lines.append(PAGE_BREAK)

    def _end_section(self) -> None:
        """Write the section's footer, and the header of the next section on its page."""
        self._margin("footer")
        self._section += 1
        following = self._sections[self._section] if self._section < len(self._sections) else None
        if following is None or _kind(following) != "continuous":
            self._break_page()
        self._margin("header")

    def _margin(self, which: str) -> None:
        """Write the section's headers or footers, those that have not been written before."""
        if self._section >= len(self._sections):
            return
        for reference in self._sections[self._section].iterchildren(f"{W}{which}Reference"):
            relationship = self._relationships.get(reference.get(_R_ID, ""))
            root = self._package.xml(relationship.target) if relationship else None
            if root is None:
                continue
            lines = self._capture(root)
            text = "\n".join(line for line in lines if line)
            if text and text not in self._said:
                self._said.add(text)
                self._lines.extend(line for line in lines if line)

    def _read_numbering(self, main: str) -> Numbering:
        """Read the document's lists."""
        parts = [
            next((self._package.xml(name) for name in self._package.related(main, kind)), None)
            for kind in ("numbering", "styles")
        ]
        return read_numbering(*parts)

    def _read_notes(self, main: str, kind: str) -> dict[str, etree._Element]:
        """Read the document's foot- or endnotes by their id."""
        notes: dict[str, etree._Element] = {}
        for name in self._package.related(main, f"{kind}s"):
            root = self._package.xml(name)
            for note in () if root is None else root.iterchildren(f"{W}{kind}"):
                notes[note.get(f"{W}id", "")] = note
        return notes


def paginate(lines: Iterable[str | None]) -> list[str]:
    """Join lines into pages; breaks with nothing between them are one."""
    pages: list[list[str]] = [[]]
    for line in lines:
        if line is not PAGE_BREAK:
            pages[-1].append(line)
        elif any(pages[-1]):
            pages.append([])
    if len(pages) > 1 and not any(pages[-1]):
        pages.pop()
    return ["\n".join(page).strip("\n") for page in pages]


def _cells(row: etree._Element) -> Iterator[etree._Element]:
    """Yield a row's cells, also those inside content controls, without the rest of vertically merged ones."""
    for child in row:
        name = _name(child)
        if name == "tc":
            merge = child.find(f"{W}tcPr/{W}vMerge")
            if merge is None or merge.get(VAL) == "restart":
                yield child
        elif name not in _SKIPPED:
            yield from _cells(child)


def _name(element: etree._Element) -> str:
    """Return the element's name without its namespace."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _is_on(toggle: etree._Element | None) -> bool:
    """Say whether a property that is on by being there is not switched off."""
    return toggle is not None and toggle.get(VAL, "1") not in _OFF


def _kind(section: etree._Element) -> str:
    """Say how a section begins."""
    kind = section.find(f"{W}type")
    return "nextPage" if kind is None else kind.get(VAL, "nextPage")
