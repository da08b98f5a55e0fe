"""Where a webhook may go: what a URL must look like, and which addresses are out of bounds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Networks = Sequence[IPv4Network | IPv6Network]

MAX_URL_CHARACTERS: Final = 2048
_PORTS: Final = {"https": 443, "http": 80}
_PRINTABLE: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_EMBEDDING: Final = ip_network("64:ff9b::/96")


class TargetError(ValueError):
    """A URL that no webhook is sent to; ``str`` is a sentence from our own words."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart; ``host`` in lower case, an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def address(self) -> Address | None:
        """The host, when it is an address and not a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def authority(self) -> str:
        """Host and port as the ``Host`` header has them."""
        return authority(self.host, self.port, self.scheme)


def authority(host: str, port: int, scheme: str) -> str:
    """Write host and port, brackets around an IPv6 address, the port only where it is not the scheme's own."""
    name = f"[{host}]" if ":" in host else host
    return name if port == _PORTS[scheme] else f"{name}:{port}"


def parse_target(url: str) -> Target:
    """Take a URL apart.

    Raises:
        TargetError: it is no absolute https or http URL, or has parts that a webhook has no use for.
    """
    if len(url) > MAX_URL_CHARACTERS or not _PRINTABLE.fullmatch(url):
        message = f"a URL is 1 to {MAX_URL_CHARACTERS} printable ASCII characters"
        raise TargetError(message)
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        message = "the URL cannot be read"
        raise TargetError(message) from None
    if parts.scheme not in _PORTS or not host:
        message = "an absolute https URL is needed"
        raise TargetError(message)
    if parts.fragment or "@" in parts.netloc or "\\" in url:
        message = "a URL has no user, password, fragment or backslash here"
        raise TargetError(message)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _checked(Target(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path))


def _checked(target: Target) -> Target:
    """Refuse hosts and ports that are none; odd spellings of addresses, such as ``0x7f.1``, among them."""
    last_label = target.host.rstrip(".").rpartition(".")[2]
    numeric = last_label.isdigit() or last_label.startswith("0x")
    if target.port == 0 or (target.address is None and (numeric or not _NAME.fullmatch(target.host))):
        message = "the URL's host or port is none"
        raise TargetError(message)
    return target


def parse_networks(text: str) -> Networks:
    """Read networks such as ``10.0.0.0/8,fd00::/8``.

    Raises:
        ValueError: one is no network.
    """
    return [ip_network(part.strip()) for part in text.split(",") if part.strip()]


def is_listed(address: Address, networks: Networks) -> bool:
    """Say whether ``address`` is in one of ``networks``, by what it stands for."""
    plain = embedded(address)
    return any(plain in network for network in networks)


def is_public(address: Address) -> bool:
    """Say whether anybody on the internet could reach ``address``: then reaching it for them gives nothing away.

    Private, loopback, link-local (with the clouds' metadata services), shared, multicast, reserved and
    documentation ranges are not.
    """
    plain = embedded(address)
    special = plain.is_multicast or plain.is_reserved or plain.is_link_local or plain.is_unspecified
    site_local = isinstance(plain, IPv6Address) and plain.is_site_local
    return plain.is_global and not special and not site_local


def may_go_to(address: Address, *, scheme: str, networks: Networks) -> bool:
    """Say whether a webhook may be sent to ``address``: a listed one, or with https a public one."""
    return is_listed(address, networks) or (scheme == "https" and is_public(address))


def check_url(url: str, networks: Networks) -> None:
    """Look at a URL as closely as one can without resolving its name.

    Raises:
        TargetError: nothing could ever be sent to it.
    """
    target = parse_target(url)
    address = target.address
    if target.scheme == "http" and not networks:
        message = "https is needed"
        raise TargetError(message)
    if address is not None and not may_go_to(address, scheme=target.scheme, networks=networks):
        message = "this address is not sent to"
        raise TargetError(message)


def embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for (mapped, 6to4, NAT64), else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _EMBEDDING:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
