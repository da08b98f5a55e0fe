"""One signed S3 request, by the standard library alone: the launcher runs before any package is installed."""

import hashlib
import hmac
import http.client
from dataclasses import dataclass
from datetime import UTC, datetime

_TIMEOUT_SECONDS = 10.0
_SIGNED_HEADERS = "host;x-amz-content-sha256;x-amz-date"


@dataclass(frozen=True, slots=True)
class S3Account:
    """Where the object store is and who asks."""

    port: int
    region: str
    access_key: str
    secret_key: str

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request, signed with AWS Signature Version 4; return status and body.

        Shape: ``path`` is ``/bucket`` or ``/bucket/key`` of unreserved characters, without a query.

        Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, self._headers(method, path, body))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _headers(self, method: str, path: str, body: bytes) -> dict[str, str]:
        instant = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        host = f"127.0.0.1:{self.port}"
        canonical = (
            f"{method}\n{path}\n\n"
            f"host:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{instant}\n\n"
            f"{_SIGNED_HEADERS}\n{digest}"
        )
        scope = f"{instant[:8]}/{self.region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{instant}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.new(self._signing_key(scope), text.encode(), hashlib.sha256).hexdigest()
        return {
            "Host": host,
            "x-amz-content-sha256": digest,
            "x-amz-date": instant,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, "
            f"SignedHeaders={_SIGNED_HEADERS}, Signature={signature}",
        }

    def _signing_key(self, scope: str) -> bytes:
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key
