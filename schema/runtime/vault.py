"""Secrets that must be read again, such as those that webhooks are signed with: encrypted under keys from settings.

AES-256-GCM with a random nonce; what a secret belongs to is bound to it, so that one row's cannot be put in
another's place.
"""

import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES: Final = 12


class SealedError(Exception):
    """No key of this process opens it."""


class Vault:
    """Seals with the first key and opens with any, so that keys can be replaced while in use."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Take keys of 32 bytes, the newest first."""
        self._ciphers = [AESGCM(key) for key in keys]

    @property
    def can_seal(self) -> bool:
        """Whether there is a key at all."""
        return bool(self._ciphers)

    def seal(self, secret: bytes, *, owner: bytes) -> bytes:
        """Encrypt a secret of ``owner``'s."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[0].encrypt(nonce, secret, owner)

    def open(self, sealed: bytes, *, owner: bytes) -> bytes:
        """Decrypt a secret of ``owner``'s.

        Raises:
            SealedError: it was sealed with another key, for another owner, or is damaged.
        """
        nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(nonce, ciphertext, owner)
            except (InvalidTag, ValueError):
                continue
        raise SealedError
