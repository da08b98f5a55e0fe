"""DOCX: everything a reader sees, in reading order, and nothing that was struck out."""

import io
import zipfile

import docx as python_docx
import pytest

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits, LimitName
from schema.wire.results import PageSource
from stages.adapters.docx import DocxReader
from stages.adapters.numbering import figure
from stages.adapters.source import Source
from tests.support.documents import (
    OFFICE,
    PACKAGE,
    archive,
    billion_laughs,
    bomb,
    docx,
    paragraph,
    part,
    pdf,
    repacked,
    table,
    with_entity,
)

MIB = 1 << 20
DEEP = 300


def _read(data, **limits):
    reader = DocxReader(Source(data=data), DocumentLimits(**limits))
    return [reader.read(number).text for number in range(1, reader.pages + 1)]


def _text(body, parts=None):
    (page,) = _read(docx(body, parts))
    return page


def _run(inside):
    return f"<w:r>{inside}</w:r>"


def _numbered(text, level=0, number=1):
    properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(text, properties)


def test_a_document_of_the_usual_library_is_read():
    """The plain case, made by a program that is not ours."""
    document = python_docx.Document()
    document.add_heading("Agreement", 1)
    document.add_paragraph("between A and B")
    cells = document.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "Fee", "500 €"
    buffer = io.BytesIO()
    document.save(buffer)

    reader = DocxReader(Source(data=buffer.getvalue()), DocumentLimits())

    assert reader.read(1).source is PageSource.DOCX
    assert reader.read(1).text.split("\n") == ["Agreement", "between A and B", "Fee\t500 €"]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<w:ins><w:r><w:t>kept</w:t></w:r></w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>", "kept"),
        ("<w:moveFrom><w:r><w:t>from</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>to</w:t></w:r></w:moveTo>", "to"),
        ("<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t></w:r>", "a\tb-c"),
        ("<w:r><w:t>a</w:t><w:br/><w:t>b</w:t></w:r>", "a\nb"),
        ("<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:t>seen</w:t></w:r>", "seen"),
        ('<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>seen</w:t></w:r>', "seen"),
        ("<w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>7</w:t></w:r>", "7"),
        ("<w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink>", "link"),
        ("<w:sdt><w:sdtContent><w:r><w:t>control</w:t></w:r></w:sdtContent></w:sdt>", "control"),
        ("<w:smartTag><w:r><w:t>tag</w:t></w:r></w:smartTag>", "tag"),
    ],
)
def test_a_line_holds_what_its_reader_sees(inside, expected):
    """Struck out text is no longer agreed, inserted text is."""
    assert _text(f"<w:p>{inside}</w:p>") == expected


def test_a_text_box_follows_its_paragraph_once():
    """Word stores it twice, for new and for old readers."""
    box = f"<w:txbxContent>{paragraph('inside')}</w:txbxContent>"
    alternatives = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    )

    assert _text(f"<w:p>{_run('<w:t>before</w:t>')}{_run(alternatives)}</w:p>") == "before\ninside"


def test_a_row_of_a_table_is_a_line():
    """What stands beside a label belongs to it."""
    rows = table([paragraph("Fee"), paragraph("500")], [paragraph("Term"), paragraph("1 year") + paragraph("fixed")])

    assert _text(rows) == "Fee\t500\nTerm\t1 year fixed"


def test_a_nested_table_stands_in_its_cell():
    """Letterheads and forms are tables within tables."""
    inner = table([paragraph("x"), paragraph("y")])

    assert _text(table([paragraph("a"), inner + paragraph("")])) == "a\tx\ty"


def test_a_table_that_holds_the_whole_page_keeps_its_lines():
    """Some templates put a contract into one cell."""
    clause = "word " * 70

    lines = _text(table([paragraph(clause) + paragraph("second"), paragraph("aside")])).split("\n")

    assert lines == [clause.rstrip(), "second", "aside"]


def test_a_vertically_merged_cell_is_read_once():
    """The rest of a merged cell is empty, whatever the file has there."""
    rest = f"<w:tcPr><w:vMerge/></w:tcPr>{paragraph('again')}"

    assert _text(table([paragraph("a"), paragraph("b")], [rest, paragraph("c")])) == "a\tb\nc"


LEVELS = """
<w:abstractNum w:abstractNumId="0">
  <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>
  <w:lvl w:ilvl="2"><w:numFmt w:val="bullet"/><w:lvlText w:val="x"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="0"/>
  <w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>
"""


def test_list_numbers_are_counted_as_word_shows_them():
    """A clause is cited by its number, which the file does not contain."""
    body = "".join(
        [
            _numbered("First"),
            _numbered("detail", 1),
            _numbered("more", 1),
            _numbered("point", 2),
            _numbered("Second"),
            _numbered("anew", 1),
            _numbered("Fifth", 0, number=2),
            _numbered("in no known list", 0, number=99),
        ]
    )

    assert _text(body, {"numbering": part("numbering", LEVELS)}).split("\n") == [
        "1. First",
        "1.a) detail",
        "1.b) more",
        "• point",
        "2. Second",
        "2.a) anew",
        "5. Fifth",
        "in no known list",
    ]


def test_a_style_can_put_a_paragraph_into_a_list():
    """Contracts number their headings by style, and one style builds upon another."""
    styles = part(
        "styles",
        '<w:style w:styleId="H1"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="H2"><w:basedOn w:val="H1"/><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>',
    )
    body = "".join(paragraph(name, f'<w:pStyle w:val="{name}"/>') for name in ("H1", "H2", "Loop"))

    text = _text(body, {"numbering": part("numbering", LEVELS), "styles": styles})

    assert text.split("\n") == ["1. H1", "1.a) H2", "Loop"]


@pytest.mark.parametrize(
    ("number", "style", "expected"),
    [
        (4, "lowerRoman", "iv"),
        (1949, "upperRoman", "MCMXLIX"),
        (27, "upperLetter", "AA"),
        (3, "decimalZero", "03"),
        (3, "none", ""),
        (3, "chicago", "3"),
        (0, "lowerRoman", "0"),
    ],
)
def test_numbers_are_written_in_their_style(number, style, expected):
    """Clause iv is not clause 4."""
    assert figure(number, style) == expected


BREAK = '<w:r><w:br w:type="page"/></w:r>'
RENDERED = "<w:r><w:lastRenderedPageBreak/></w:r>"


@pytest.mark.parametrize(
    ("between", "pages"),
    [
        (f"<w:p>{BREAK}</w:p>", ["one", "two"]),
        (f"<w:p>{BREAK}</w:p><w:p>{RENDERED}</w:p>", ["one", "two"]),
        (paragraph("", "<w:pageBreakBefore/>"), ["one", "two"]),
        (paragraph("", "<w:sectPr/>"), ["one", "two"]),
        (f"<w:p>{_run('<w:t>end</w:t>')}{RENDERED}{_run('<w:t>begin</w:t>')}</w:p>", ["one\nend", "begin\ntwo"]),
    ],
)
def test_pages_end_where_word_ended_them(between, pages):
    """One break told in two ways is one page."""
    body = paragraph("one") + between + paragraph("two") + "<w:sectPr/>"

    assert [page.replace("\n\n", "\n") for page in _read(docx(body))] == pages


def test_a_continuous_section_is_no_new_page():
    """Columns begin sections in the middle of a page."""
    body = paragraph("one") + paragraph("", "<w:sectPr/>") + paragraph("two")
    body += '<w:sectPr><w:type w:val="continuous"/></w:sectPr>'

    assert len(_read(docx(body))) == 1


def test_headers_notes_and_footers_stand_where_a_reader_meets_them():
    """The header first, a footnote at the foot of its page, endnotes last; what is on every page is said once."""
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="2"/></w:r>'
    margins = '<w:headerReference r:id="header1"/><w:footerReference r:id="footer1"/>'
    body = (
        paragraph("one")
        + f"<w:p>{_run('<w:t>cited</w:t>')}{reference}{BREAK}</w:p>"
        + paragraph("two", f"<w:sectPr>{margins}</w:sectPr>")
        + f'<w:sectPr>{margins}<w:type w:val="continuous"/></w:sectPr>'
    )
    parts = {
        "header1": part("hdr", paragraph("Header")),
        "footer1": part("ftr", paragraph("Footer")),
        "footnotes": part("footnotes", f'<w:footnote w:id="2">{paragraph("Footnote")}</w:footnote>'),
        "endnotes": part("endnotes", f'<w:endnote w:id="2">{paragraph("Endnote")}</w:endnote>'),
    }

    pages = [[line for line in page.split("\n") if line] for page in _read(docx(body, parts))]

    assert pages[0] == ["Header", "one", "cited", "Footnote"]
    assert pages[1] == ["two", "Footer", "Endnote"]


def test_a_strict_document_is_read_too():
    """ISO 29500 strict has other namespaces and the same words."""
    assert _read(docx(paragraph("strict"), strict=True)) == ["strict"]


def test_an_external_part_is_never_fetched():
    """P12: a document must not make the worker call anyone."""
    body = paragraph("text") + '<w:sectPr><w:headerReference r:id="r9"/></w:sectPr>'
    relationships = (
        f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r9" Type="{OFFICE}/header"'
        ' TargetMode="External" Target="http://127.0.0.1:9/header.xml"/></Relationships>'
    )
    whole = repacked(docx(body), {"word/_rels/document.xml.rels": relationships.encode()})

    assert _read(whole) == ["text"]


MACRO_TYPE = "application/vnd.ms-word.document.macroEnabled.main+xml"
SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"


def test_a_document_with_macros_is_a_document():
    """Nothing in it is ever run here."""
    assert _read(docx(paragraph("text"), main_type=MACRO_TYPE)) == ["text"]


@pytest.mark.parametrize(
    ("data", "limits", "code"),
    [
        (archive({"readme.txt": b"text"}), {}, ErrorCode.UNSUPPORTED_TYPE),
        (docx(paragraph("x"), main_type=SHEET_TYPE), {}, ErrorCode.UNSUPPORTED_TYPE),
        (docx(paragraph("x"))[:-40], {}, ErrorCode.CORRUPT_DOCUMENT),
        (docx("<w:p>"), {}, ErrorCode.CORRUPT_DOCUMENT),
        (docx("<w:p>" * DEEP + "</w:p>" * DEEP), {}, ErrorCode.ARCHIVE_BOMB),
        (docx(paragraph("x"), {"footnotes": "<a>" * 11 + "</a>" * 11}), {"max_depth": 10}, ErrorCode.ARCHIVE_BOMB),
        (docx(paragraph("x" * 11_000_000)), {"max_ratio": 10_000}, ErrorCode.ARCHIVE_BOMB),
        (billion_laughs(), {}, ErrorCode.ARCHIVE_BOMB),
        (with_entity(size=50_000, uses=5_000), {}, ErrorCode.ARCHIVE_BOMB),
        (with_entity(size=50_000, uses=100), {}, ErrorCode.CORRUPT_DOCUMENT),
        (pdf("not a zip"), {}, ErrorCode.CORRUPT_DOCUMENT),
        (repacked(docx(paragraph("x")), {}, zipfile.ZIP_BZIP2), {}, ErrorCode.CORRUPT_DOCUMENT),
        (repacked(docx(paragraph("x")), {}, zipfile.ZIP_LZMA), {}, ErrorCode.CORRUPT_DOCUMENT),
        (bomb(12 * MIB), {}, ErrorCode.ARCHIVE_BOMB),
        (bomb(12 * MIB, declared=1000), {}, ErrorCode.CORRUPT_DOCUMENT),
        (bomb(12 * MIB), {"max_ratio": 10_000, "max_part_bytes": 8 * MIB}, ErrorCode.ARCHIVE_BOMB),
        (bomb(12 * MIB), {"max_inflated_bytes": 8 * MIB}, ErrorCode.ARCHIVE_BOMB),
        (docx(paragraph("x")), {"max_entries": 3}, ErrorCode.ARCHIVE_BOMB),
        (archive({"a" * 9 + str(number): b"" for number in range(20_001)}), {}, ErrorCode.ARCHIVE_BOMB),
        (docx(f"<w:p>{BREAK}</w:p>".join(map(paragraph, "abc"))), {"max_pages": 2}, ErrorCode.TOO_MANY_PAGES),
    ],
)
def test_a_file_that_is_no_document_or_a_bomb_is_refused_by_name(data, limits, code):
    """P12: what an archive declares is a claim; what comes out of it is counted."""
    with pytest.raises(PermanentError) as caught:
        _read(data, **limits)

    assert caught.value.code is code
    if code is ErrorCode.ARCHIVE_BOMB:
        assert caught.value.actual > caught.value.limit
    if caught.value.limit_name is not None:
        assert caught.value.actual > caught.value.limit == getattr(DocumentLimits(**limits), caught.value.limit_name)


@pytest.mark.parametrize("named", [lambda name: name.replace("/", "\\"), lambda name: f"/{name}"])
def test_entries_may_be_named_as_other_programs_do(named):
    """Word opens them as well."""
    with zipfile.ZipFile(io.BytesIO(docx(paragraph("text")))) as packed:
        renamed = archive({named(name): packed.read(name) for name in packed.namelist()})

    assert _read(renamed) == ["text"]


@pytest.mark.parametrize("stranger", ["../../../etc/passwd", "/etc/passwd", "word\\..\\..\\x", "word/media/image1.png"])
def test_an_entry_that_nobody_asks_for_is_never_unpacked(stranger):
    """Nothing is written by an entry's name; names that lead elsewhere lead nowhere."""
    assert _read(repacked(docx(paragraph("text")), {stranger: b"root:x"})) == ["text"]


def test_a_version_without_text_gives_way_to_one_that_has_some():
    """Programs write what is new as a drawing, and what older readers show beside it."""
    space = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    drawn = '<mc:Choice Requires="x"><w:drawing/></mc:Choice>'
    both = f"<mc:AlternateContent {space}>{drawn}<mc:Fallback><w:t>told</w:t></mc:Fallback></mc:AlternateContent>"

    assert _text(f"<w:p><w:r>{both}</w:r></w:p>") == "told"


def test_an_archive_with_a_password_needs_a_password():
    """Damage and a lock are different news to the sender."""
    data = bytearray(docx(paragraph("x")))
    data[data.index(b"PK\x01\x02") + 8] |= 1

    with pytest.raises(PermanentError) as caught:
        _read(bytes(data))

    assert caught.value.code is ErrorCode.PASSWORD_REQUIRED


@pytest.mark.parametrize("data", [billion_laughs(), with_entity(size=50_000, uses=5_000)])
def test_entities_that_expand_name_the_ratio(data):
    """The sender sees which limit it was, though nothing was ever written out."""
    with pytest.raises(PermanentError) as caught:
        _read(data)

    assert caught.value.limit_name is LimitName.RATIO


@pytest.mark.parametrize("lost", [50, 300])
def test_a_file_that_lost_its_beginning_is_corrupt(tmp_path, lost):
    """Its directory then points to before the file, which the kernel refuses, not the library."""
    file = tmp_path / "document"
    file.write_bytes(docx(paragraph("x"))[lost:])

    with pytest.raises(PermanentError) as caught:
        DocxReader(Source(path=file), DocumentLimits())

    assert caught.value.code is ErrorCode.CORRUPT_DOCUMENT
