"""Nothing that a document points to is ever fetched: the parsers run beside a port and a file that would tell."""

import asyncio

import pytest

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.kinds import Kind
from stages.normalize import NormalizeStage
from stages.sandbox.pool import Sandbox
from stages.sandbox.settings import SandboxSettings
from tests.support.documents import (
    OFFICE,
    PACKAGE,
    SENTENCE,
    WORD,
    docx,
    paragraph,
    pdf_with,
    plain_pdf,
    repacked,
    stream,
)
from tests.support.eventually import eventually
from tests.support.parsers import MemoryCheckpoint, work_on
from tests.support.passage import BUDGET, passed
from tests.support.trap import MARK, trap

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
INCLUDE = "http://www.w3.org/2001/XInclude"
SVG = "http://www.w3.org/2000/svg"


@pytest.fixture
async def bait(tmp_path):
    """A port and a file to point to."""
    async with trap(tmp_path) as set_up:
        yield set_up


@pytest.fixture
async def sandbox(tmp_path):
    """Children with the real parsers, on whose way nothing stands to the port and the file."""
    pool = Sandbox(SandboxSettings(scratch_dir=tmp_path / "scratch"))
    await pool.start()
    yield pool
    await pool.close()


async def test_the_trap_notices_a_visit(bait):
    """A trap that never shuts would let every other test here pass."""
    loop = asyncio.get_running_loop()
    _, writer = await asyncio.open_connection("127.0.0.1", bait.port)
    writer.close()
    packet, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", bait.port))
    packet.sendto(b"x")
    await eventually(lambda: len(bait.visits) == 2)
    packet.close()

    assert sorted(bait.visits) == ["tcp", "udp"]


def _linked_docx(target: str) -> bytes:
    """Make a DOCX with everything that Word would fetch: template, chunk, picture, header, part of a page."""
    external = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" TargetMode="External" Target="{target}"/>'
        for kind in ("attachedTemplate", "aFChunk", "image", "header", "footnotes", "styles", "hyperlink", "frame")
    )
    relationships = f'<Relationships xmlns="{PACKAGE}/relationships">{external}</Relationships>'.encode()
    svg = f'<svg xmlns="{SVG}" xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="{target}"/></svg>'
    body = (
        f'<w:altChunk r:id="aFChunk"/><w:p><w:r><w:drawing><a:blip xmlns:a="{DRAWING}" r:link="image"/></w:drawing>'
        f'</w:r></w:p><xi:include xmlns:xi="{INCLUDE}" href="{target}" parse="text"/>{paragraph(SENTENCE)}'
        '<w:sectPr><w:headerReference w:type="default" r:id="header"/></w:sectPr>'
    )
    return repacked(
        docx(body),
        {
            "word/_rels/document.xml.rels": relationships,
            "word/_rels/settings.xml.rels": relationships,
            "word/media/image.svg": svg.encode(),
        },
    )


def _document_type(target: str) -> str:
    """Return a declaration of entities that lie elsewhere; of a whole DTD as well where one could be got."""
    entity = f'<!ENTITY e SYSTEM "{target}">'
    if target.startswith("file:"):
        return f"<!DOCTYPE d [{entity}]>"
    return f'<!DOCTYPE d SYSTEM "{target}" [{entity}<!ENTITY % p SYSTEM "{target}"> %p;]>'


def _declared_docx(target: str, part: str) -> bytes:
    """Make a DOCX one of whose parts has a document type to be fetched, and entities that are elsewhere."""
    main = f'{_document_type(target)}<w:document xmlns:w="{WORD}"><w:body>{paragraph("&e;")}</w:body></w:document>'
    return repacked(docx(paragraph(SENTENCE)), {part: main.encode()})


def _linked_pdf(target: str) -> bytes:
    """Make a PDF with every action that goes elsewhere, and with streams that lie there."""
    place = f"<</Type/Filespec/FS/URL/F({target})>>" if target.startswith("http") else f"({target})"
    actions = (
        f"<</S/URI/URI({target})>>",
        f"<</S/GoToR/F {place}/D[0/Fit]>>",
        f"<</S/Launch/F {place}>>",
        f"<</S/SubmitForm/F {place}>>",
        f"<</S/ImportData/F {place}>>",
        f"<</S/JavaScript/JS(app.launchURL\\({target}\\))>>",
    )
    links = "".join(f"<</Type/Annot/Subtype/Link/Rect[0 0 595 842]/A {action}>>" for action in actions)
    resources = "/Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>/XObject<</I 6 0 R/R 7 0 R>>"
    shown = f"BT /F1 12 Tf 72 600 Td ({SENTENCE}) Tj ET q 99 0 0 99 0 0 cm /I Do /R Do Q".encode()
    return plain_pdf(
        f"<</Type/Catalog/Pages 2 0 R/OpenAction {actions[2]}/AA<</WC {actions[0]}>>"
        f"/Names<</JavaScript<</Names[(a){actions[5]}]>>>>/URI<</Base({target})>>>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents[4 0 R 5 0 R]/Resources<<{resources}>>"
        f"/Annots[{links}]/AA<</O {actions[0]}>>>>",
        stream("", shown),
        stream(f"/F {place}", b""),
        stream(f"/Type/XObject/Subtype/Image/Width 9/Height 9/BitsPerComponent 8/ColorSpace/DeviceGray/F {place}", b""),
        stream(f"/Type/XObject/Subtype/Form/BBox[0 0 99 99]/Ref<</F {place}/Page 0>>", b""),
    )


@pytest.mark.parametrize("where", ["port", "file"])
@pytest.mark.parametrize("make", [_linked_docx, _linked_pdf])
async def test_what_a_document_links_to_is_left_alone(sandbox, bait, make, where):
    """Whoever sends a document must not reach into the network or the disk of whoever reads it."""
    done = await passed(sandbox, make(bait.url if where == "port" else str(bait.file)))

    assert done.texts == [SENTENCE]
    assert bait.visits == []


@pytest.mark.parametrize("where", ["port", "file"])
@pytest.mark.parametrize("part", ["[Content_Types].xml", "_rels/.rels", "word/document.xml"])
async def test_a_document_type_is_neither_fetched_nor_believed(sandbox, bait, part, where):
    """No office file has one."""
    with pytest.raises(PermanentError) as caught:
        await passed(sandbox, _declared_docx(bait.url if where == "port" else bait.file.as_uri(), part))

    assert caught.value.code is ErrorCode.CORRUPT_DOCUMENT
    assert bait.visits == []


@pytest.mark.parametrize("where", ["port", "file"])
async def test_an_embedded_invoice_with_a_document_type_is_no_invoice(sandbox, bait, where):
    """The printed page is read instead; what the XML points to is not."""
    target = bait.url if where == "port" else bait.file.as_uri()
    xml = (
        f'{_document_type(target)}<Invoice xmlns:xi="{INCLUDE}"><ID>&e;</ID><IssueDate>2026-01-31</IssueDate>'
        f'<xi:include href="{target}" parse="text"/></Invoice>'
    )
    read = await passed(sandbox, pdf_with("factur-x.xml", xml.encode()), kind=Kind.INVOICE)
    work = work_on(b"", kind=Kind.INVOICE, inputs={"extract": read.extracted.output})
    found = await NormalizeStage(sandbox, BUDGET).run(work, MemoryCheckpoint())

    assert read.texts == [SENTENCE]
    assert MARK not in str(found.output)
    assert bait.visits == []


@pytest.mark.parametrize("where", ["port", "file"])
async def test_a_drawing_that_points_elsewhere_is_refused(sandbox, bait, where):
    """It is markup, and no picture to a reader of pictures."""
    target = bait.url if where == "port" else str(bait.file)
    with pytest.raises(PermanentError) as caught:
        await passed(sandbox, f'<svg xmlns="{SVG}"><image href="{target}"/></svg>'.encode())

    assert caught.value.code is ErrorCode.UNSUPPORTED_TYPE
    assert bait.visits == []
