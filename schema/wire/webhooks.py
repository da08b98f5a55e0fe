"""What an endpoint receives: a thin payload, and headers by which it can tell that it is ours and new.

Source: Standard Webhooks 1.0.0, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from schema.wire.messages import rfc3339

HEADER_ID: Final = "webhook-id"
HEADER_TIMESTAMP: Final = "webhook-timestamp"
HEADER_SIGNATURE: Final = "webhook-signature"
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what every secret begins with
SECRET_BYTES: Final = 32

# In the order in which they are written; what is not among them is not told.
_MEMBERS: Final = ("id", "kind", "status", "client_tag", "error")


def new_secret() -> bytes:
    """Draw the bytes that an endpoint's messages are signed with."""
    return secrets.token_bytes(SECRET_BYTES)


def shown_secret(secret: bytes) -> str:
    """Write a secret as its owner is shown it."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def payload(*, notice_type: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """Write what is told of an event: which job ended how, and nothing of what was found in its document.

    Shape: ``{"type":…,"timestamp":…,"data":{"id":…,"kind":…,"status":…,"client_tag":…,"error":{"code":…,"stage":…}}}``.
    """
    content = {
        "type": notice_type,
        "timestamp": rfc3339(at),
        "data": {name: data.get(name) for name in _MEMBERS},
    }
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def signed_headers(*, event_id: UUID, timestamp: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Return the headers of one attempt: the event's id, the attempt's time, a signature by each of ``keys``.

    Units: ``timestamp`` in seconds of Unix time.
    """
    signed = f"{event_id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return {
        HEADER_ID: str(event_id),
        HEADER_TIMESTAMP: str(timestamp),
        HEADER_SIGNATURE: " ".join(f"v1,{signature}" for signature in signatures),
    }
