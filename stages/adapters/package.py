"""The archive that a DOCX is: parts, relationships and content types, unpacked within limits."""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final
from urllib.parse import unquote

from lxml import etree

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import MIB, DocumentLimits, LimitName
from stages.adapters.entities import expanded_bytes
from stages.adapters.source import Source, is_damage

_CHUNK_BYTES: Final = 64 * 1024
_COUNTED_BYTES: Final = 1 * MIB
_ENTRY: Final = b"PK\x01\x02"
# Small parts may be packed as tightly as they like; a few kilobytes of spaces are no bomb.
_RATIO_GRACE_BYTES: Final = 4 * MIB
# The XML parser's own limit for a text in one piece.
_MAX_TEXT_BYTES: Final = 10_000_000
_CONTENT_TYPES: Final = "[content_types].xml"
_ENCRYPTED_FLAG: Final = 0x1
# Packages of Office may use no others (ISO/IEC 29500-2); what zipfile inflates by those has no bound until it is there.
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_WORD: Final = "wordprocessingml"
_MACRO_WORD: Final = "ms-word"
# Word's own names and those of ISO 29500 strict, which differ in their first part only.
_STRICT: Final = (
    (
        b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    ),
    (
        b"http://purl.oclc.org/ooxml/officeDocument/relationships",
        b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    ),
)


@dataclass(frozen=True, slots=True)
class Relationship:
    """What one part says about another: the last word of the relationship's type, and the part's name."""

    kind: str
    target: str


class Package:
    """An opened archive.

    Only the parts that are asked for are unpacked, and their bytes are counted as they come out: the sizes
    that an archive declares are claims. External targets do not exist here, so nothing is ever fetched.
    """

    def __init__(self, source: Source, limits: DocumentLimits) -> None:
        """Open the archive and read its directory.

        Raises:
            PermanentError: ``corrupt_document`` or ``archive_bomb``.
        """
        self._limits = limits
        self._inflated = 0
        self._has_deeper = etree.XPath(f"boolean({'/*' * (limits.max_depth + 1)})")
        self._stream = source.open()
        _check_entries(self._stream, limits.max_entries)
        with _zip_errors():
            self._archive = zipfile.ZipFile(self._stream)
        self._entries = {_plain(entry.filename): entry for entry in self._archive.infolist()}
        declared = sum(entry.file_size for entry in self._archive.infolist())
        if declared > limits.max_inflated_bytes:
            raise _bomb(LimitName.INFLATED_BYTES, limits.max_inflated_bytes, declared)

    def close(self) -> None:
        """Let go of the archive."""
        self._archive.close()
        self._stream.close()

    def main_part(self) -> str:
        """Return the name of the document's main part.

        Raises:
            PermanentError: ``unsupported_type``, when this is not a word-processing document.
        """
        types = self.xml(_CONTENT_TYPES)
        if types is None:
            raise PermanentError(ErrorCode.UNSUPPORTED_TYPE)
        mains = [name for name in self.related("", "officeDocument") if name.lower() in self._entries]
        if not mains or not _is_word(_content_type(types, mains[0])):
            raise PermanentError(ErrorCode.UNSUPPORTED_TYPE)
        return mains[0]

    def related(self, part: str, kind: str) -> list[str]:
        """Return the names of the parts that ``part`` (empty for the package) relates to as ``kind``."""
        return [found.target for found in self.relationships(part).values() if found.kind == kind]

    def relationships(self, part: str) -> dict[str, Relationship]:
        """Return the internal relationships of ``part`` by their id."""
        folder, name = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        if root is None:
            return {}
        return {
            item.get("Id", ""): Relationship(
                item.get("Type", "").rpartition("/")[2], _resolve(folder, item.get("Target", ""))
            )
            for item in root
            if item.get("TargetMode") != "External"
        }

    def xml(self, name: str) -> etree._Element | None:
        """Parse a part; ``None`` when there is no such part.

        Raises:
            PermanentError: ``archive_bomb``, or ``corrupt_document``, also for a DTD, which no office file has:
                refusing it leaves no entity to expand and none to fetch.
        """
        data = self._part(name)
        if data is None:
            return None
        for strict, transitional in _STRICT:
            data = data.replace(strict, transitional)
        parser = etree.XMLParser(
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            root = etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            raise self._refusal(error, data) from None
        except ValueError:
            raise PermanentError(ErrorCode.CORRUPT_DOCUMENT) from None
        if root.getroottree().docinfo.internalDTD is not None:
            raise PermanentError(ErrorCode.CORRUPT_DOCUMENT)
        if self._has_deeper(root):
            raise self._too_deep()
        return root

    def _refusal(self, error: etree.XMLSyntaxError, data: bytes) -> PermanentError:
        """Tell damage from what is beyond the parser's own limits: depth, entities in entities, text of 10 MB."""
        if getattr(error, "code", None) != etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            return PermanentError(ErrorCode.CORRUPT_DOCUMENT)
        if "Excessive depth" in str(error.msg):
            return self._too_deep()
        if "entity" in str(error.msg):
            return self._written_out(data)
        return PermanentError(ErrorCode.ARCHIVE_BOMB, limit=_MAX_TEXT_BYTES, actual=len(data))

    def _written_out(self, data: bytes) -> PermanentError:
        """Return the error for entities; where they make little of it, it is refused for its DTD alone."""
        most, ratio = self._limits.max_ratio, expanded_bytes(data) // len(data)
        return _bomb(LimitName.RATIO, most, ratio) if ratio > most else PermanentError(ErrorCode.CORRUPT_DOCUMENT)

    def _too_deep(self) -> PermanentError:
        """Return the error for elements nested too deeply; nobody counts how deeply."""
        return _bomb(LimitName.DEPTH, self._limits.max_depth, self._limits.max_depth + 1)

    def _part(self, name: str) -> bytes | None:
        """Unpack a part, counting."""
        entry = self._entries.get(name.lower())
        if entry is None:
            return None
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise PermanentError(ErrorCode.PASSWORD_REQUIRED)
        if entry.compress_type not in _METHODS:
            raise PermanentError(ErrorCode.CORRUPT_DOCUMENT)
        data = bytearray()
        with _zip_errors(), self._archive.open(entry) as packed:
            while chunk := packed.read(_CHUNK_BYTES):
                data += chunk
                self._inflated += len(chunk)
                self._check_growth(len(data), entry.compress_size)
        return bytes(data)

    def _check_growth(self, part_bytes: int, packed_bytes: int) -> None:
        """Stop unpacking at the first limit that is passed."""
        limits = self._limits
        if self._inflated > limits.max_inflated_bytes:
            raise _bomb(LimitName.INFLATED_BYTES, limits.max_inflated_bytes, self._inflated)
        if part_bytes > limits.max_part_bytes:
            raise _bomb(LimitName.PART_BYTES, limits.max_part_bytes, part_bytes)
        if part_bytes > _RATIO_GRACE_BYTES and part_bytes > packed_bytes * limits.max_ratio:
            raise _bomb(LimitName.RATIO, limits.max_ratio, part_bytes // max(packed_bytes, 1))


def _check_entries(stream: BinaryIO, most: int) -> None:
    """Refuse an archive with too many entries before its directory is read: a million of them fill the memory.

    How many there are is counted by their marks, and not taken from what the archive says.
    """
    found, tail = 0, b""
    while chunk := stream.read(_COUNTED_BYTES):
        found += (tail + chunk).count(_ENTRY)
        tail = chunk[1 - len(_ENTRY) :]
        if found > most:
            raise _bomb(LimitName.ENTRIES, most, found)
    stream.seek(0)


def _bomb(name: LimitName, limit: int, actual: int) -> PermanentError:
    """Return the error for an archive that unpacks to too much."""
    return PermanentError(ErrorCode.ARCHIVE_BOMB, limit=limit, actual=actual, limit_name=name)


def _resolve(folder: str, target: str) -> str:
    """Return the name of the part that a relationship in ``folder`` points to."""
    joined = posixpath.join("/", folder, unquote(target))
    return posixpath.normpath(joined).lstrip("/")


def _plain(name: str) -> str:
    """Return an entry's name as parts are asked for; some programs write it with backslashes, or from the root."""
    return name.replace("\\", "/").lstrip("/").lower()


def _content_type(types: etree._Element, part: str) -> str:
    """Look a part's content type up: by name first, then by extension."""
    wanted = f"/{part}".lower()
    extension = part.rpartition(".")[2].lower()
    by_extension = ""
    for item in types:
        if item.get("PartName", "").lower() == wanted:
            return item.get("ContentType", "")
        if item.get("Extension", "").lower() == extension:
            by_extension = item.get("ContentType", "")
    return by_extension


def _is_word(content_type: str) -> bool:
    """Say whether it is one of Word's main parts: document or template, with macros or without."""
    return content_type.endswith(".main+xml") and (_WORD in content_type or _MACRO_WORD in content_type)


@contextmanager
def _zip_errors() -> Iterator[None]:
    """Turn what zipfile raises about damaged archives into ``corrupt_document``."""
    try:
        yield
    except OSError as error:
        if not is_damage(error):
            raise
        raise PermanentError(ErrorCode.CORRUPT_DOCUMENT) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise PermanentError(ErrorCode.CORRUPT_DOCUMENT) from None
