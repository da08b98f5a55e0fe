"""Documents to test with, made in memory: sound ones by the usual libraries, hostile ones by hand."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence

import pypdfium2
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

A4 = (595.0, 842.0)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT_WORD = "http://purl.oclc.org/ooxml/wordprocessingml/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT_OFFICE = "http://purl.oclc.org/ooxml/officeDocument/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
MAIN_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
SENTENCE = "The quick brown fox jumps over the lazy dog."


def pdf(*pages: str, size=A4, rotation=0, upward=False, **encryption: str) -> bytes:
    """Make a PDF with a text layer, a page of lines for each text.

    ``upward`` draws the last line first; ``user`` and ``owner`` are passwords.
    """
    buffer = io.BytesIO()
    lock = StandardEncryption(encryption.get("user", ""), encryption["owner"]) if encryption else None
    canvas = Canvas(buffer, pagesize=size, encrypt=lock)
    for text in pages:
        lines = list(enumerate(text.splitlines()))
        for index, line in reversed(lines) if upward else lines:
            canvas.drawString(72, size[1] - 72 - 16 * index, line)
        canvas.showPage()
    canvas.save()
    # The canvas's own way would turn the page's space as well.
    return buffer.getvalue().replace(b"/Rotate 0", f"/Rotate {rotation}".encode())


def scan(*pages: str, stamp: str = "") -> bytes:
    """Make a PDF whose pages are pictures of text, as a scanner does; a stamp is real text upon them."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for text in pages:
        canvas.drawImage(ImageReader(picture(text)), 0, 0, *A4)
        canvas.drawString(72, 20, stamp)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def pdf_with(name: str, content: bytes) -> bytes:
    """Make a PDF with an embedded file."""
    document = pypdfium2.PdfDocument(pdf(SENTENCE))
    document.new_attachment(name).set_data(content)
    buffer = io.BytesIO()
    document.save(buffer)
    document.close()
    return buffer.getvalue()


def picture(text: str, *, mode: str = "L", size=(1240, 1754)) -> Image.Image:
    """Draw text as black on white."""
    image = Image.new("L", size, "white")
    ImageDraw.Draw(image).multiline_text((100, 100), text, fill="black", font=ImageFont.load_default(44), spacing=20)
    return image.convert(mode)


def saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    """Return a picture as a file."""
    buffer = io.BytesIO()
    image.save(buffer, format=file_format, **options)
    return buffer.getvalue()


def tiff(*pages: str, **options: object) -> bytes:
    """Make a TIFF of several pages."""
    first, *others = (picture(text, size=(1240, 300)) for text in pages)
    return saved(first, "TIFF", save_all=True, append_images=others, **options)


def png_of_size(width: int, height: int) -> bytes:
    """Make a PNG whose header alone claims a size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(b"")) + _chunk(b"IEND", b"")


def webp_of_size(width: int, height: int) -> bytes:
    """Make an animated WebP whose header alone claims a size."""
    black, white = (Image.new("L", (9, 9), colour) for colour in ("black", "white"))
    moving = bytearray(saved(black, "WEBP", save_all=True, append_images=[white]))
    moving[24:30] = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return bytes(moving)


def docx(body: str, parts: Mapping[str, str] | None = None, *, strict: bool = False, main_type=MAIN_TYPE) -> bytes:
    """Make a DOCX around the XML inside ``w:body``; ``parts`` maps names such as ``footnotes`` to their XML."""
    word, office = (STRICT_WORD, STRICT_OFFICE) if strict else (WORD, OFFICE)
    parts = parts or {}
    relationships = "".join(
        f'<Relationship Id="{name}" Type="{office}/{name.rstrip("0123456789")}" Target="{name}.xml"/>' for name in parts
    )
    content = {
        "[Content_Types].xml": (
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main_type}"/></Types>'
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>'
        ),
        "word/_rels/document.xml.rels": (
            f'<Relationships xmlns="{PACKAGE}/relationships">{relationships}</Relationships>'
        ),
        "word/document.xml": (f'<w:document xmlns:w="{word}" xmlns:r="{office}"><w:body>{body}</w:body></w:document>'),
        **{f"word/{name}.xml": xml for name, xml in parts.items()},
    }
    return archive({name: text.encode() for name, text in content.items()})


def part(element: str, inside: str) -> str:
    """Return the XML of a part such as ``w:footnotes``."""
    return f'<w:{element} xmlns:w="{WORD}" xmlns:r="{OFFICE}">{inside}</w:{element}>'


def paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of one run."""
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def table(*rows: Sequence[str]) -> str:
    """Return a table whose cells hold this XML."""
    return "".join(
        ("<w:tbl>", *(f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in row)}</w:tr>" for row in rows), "</w:tbl>")
    )


def archive(entries: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Make a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as packed:
        for name, data in entries.items():
            packed.writestr(name, data)
    return buffer.getvalue()


def repacked(data: bytes, changes: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip with some of its entries changed, or all of them packed by another method."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return archive({**{name: packed.read(name) for name in packed.namelist()}, **changes}, method)


def bomb(inflated: int, *, declared: int | None = None) -> bytes:
    """Make a DOCX whose main part inflates to so many bytes, whatever size its directory declares."""
    whole = docx(" " * inflated)
    if declared is None:
        return whole
    with zipfile.ZipFile(io.BytesIO(whole)) as packed:
        real = packed.getinfo("word/document.xml").file_size
    return whole.replace(struct.pack("<I", real), struct.pack("<I", declared))


def billion_laughs() -> bytes:
    """Make a DOCX whose main part would expand to a billion words."""
    entities = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))
    main = f'<!DOCTYPE d [{entities}]><w:document xmlns:w="{WORD}"><w:body>{paragraph("&l9;")}</w:body></w:document>'
    return repacked(docx(""), {"word/document.xml": main.encode()})


def with_entity(*, size: int, uses: int) -> bytes:
    """Make a DOCX whose main part uses one long entity again and again."""
    entity = f'<!DOCTYPE d [<!ENTITY e "{"x" * size}">]>'
    main = f'{entity}<w:document xmlns:w="{WORD}"><w:body>{paragraph("&e;" * uses)}</w:body></w:document>'
    return repacked(docx(""), {"word/document.xml": main.encode()})


def filtered_pdf(content: bytes, *filters: str) -> bytes:
    """Make a PDF of one page whose content goes through filters, the first of them first, when it is read."""
    names = "".join(f"/{name}" for name in filters)
    return plain_pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<<>>>>",
        stream(f"/Filter[{names}]", content),
    )


def drawn_pdf(content: str, *pictures: bytes) -> bytes:
    """Make a PDF of one page drawn by hand; its font is ``F1`` and its pictures are ``P0`` and so on."""
    names = "".join(f"/P{index} {index + 5} 0 R" for index in range(len(pictures)))
    font = "/Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
    return plain_pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<<{font}/XObject<<{names}>>>>>>",
        stream("", content.encode()),
        *pictures,
    )


def packed_picture(packing: str, data: bytes, *, size=(1240, 1754), bits=8) -> bytes:
    """Return a grey picture for ``drawn_pdf``, packed for a filter such as ``DCTDecode``."""
    entries = f"/Width {size[0]}/Height {size[1]}/BitsPerComponent {bits}/ColorSpace/DeviceGray/Filter/{packing}"
    return stream(f"/Type/XObject/Subtype/Image{entries}", data)


def jbig2(image: Image.Image) -> bytes:
    """Pack a picture as the JBIG2 streams in PDFs are: a page, and on it one region packed as for fax.

    Source: ITU-T T.88, sections 7.2, 7.4.6 and 7.4.8.
    """
    fax = saved(image.convert("1"), "TIFF", compression="group4", tiffinfo={278: image.height})
    tags = Image.open(io.BytesIO(fax)).tag_v2
    begins, size = tags[273][0], tags[279][0]
    region = struct.pack(">IIIIBB", *image.size, 0, 0, 0, 1) + fax[begins : begins + size]
    page = struct.pack(">IIIIBH", *image.size, 0, 0, 0, 0)
    return (
        struct.pack(">IBBBI", 0, 48, 0, 1, len(page)) + page + struct.pack(">IBBBI", 1, 38, 0, 1, len(region)) + region
    )


def plain_pdf(*objects: str | bytes) -> bytes:
    """Make a PDF of these objects, numbered from 1; the first is the catalogue."""
    whole, places = bytearray(b"%PDF-1.7\n"), []
    for number, item in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%b\nendobj\n" % (number, item.encode() if isinstance(item, str) else item)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size, begins = len(objects) + 1, len(whole)
    whole += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n".encode()
    return bytes(whole) + f"startxref\n{begins}\n%%EOF".encode()


def stream(entries: str, data: bytes) -> bytes:
    """Return a stream object."""
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (entries.encode(), len(data), data)


def deflated(byte: bytes, size: int) -> bytes:
    """Return one byte repeated, deflated without ever being in memory."""
    packer, block = zlib.compressobj(9), byte * (1 << 20)
    return b"".join([*(packer.compress(block) for _ in range(size >> 20)), packer.flush()])


def ole(*, locked: bool) -> bytes:
    """Make the head of an OLE file, with or without the stream that keeps a locked document."""
    name = "EncryptedPackage" if locked else "WordDocument"
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + name.encode("utf-16-le") + bytes(512)


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
