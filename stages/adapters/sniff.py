"""What a document really is, by all its bytes."""

from typing import Final

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.kinds import MediaType
from schema.domain.sniff import OLE, sniff, text_encoding
from stages.adapters.source import Source

_HEAD_BYTES: Final = 4096
# The stream in which Office keeps a document that has a password; directory names are UTF-16.
_ENCRYPTED_PACKAGE: Final = "EncryptedPackage".encode("utf-16-le")


def identify(source: Source) -> MediaType:
    """Return the document's type.

    A zip is taken for a DOCX here; ``stages.adapters.package`` knows whether it is one.

    Raises:
        PermanentError: ``empty_document``, ``password_required`` or ``unsupported_type``.
    """
    head = source.head(_HEAD_BYTES)
    if not head:
        raise PermanentError(ErrorCode.EMPTY_DOCUMENT)
    if head.startswith(OLE):
        locked = _ENCRYPTED_PACKAGE in source.read()
        raise PermanentError(ErrorCode.PASSWORD_REQUIRED if locked else ErrorCode.UNSUPPORTED_TYPE)
    media_type = sniff(head)
    if media_type is None or (media_type is MediaType.TEXT and not text_encoding(source.read())):
        raise PermanentError(ErrorCode.UNSUPPORTED_TYPE)
    return media_type
