"""Where webhooks may go: no spelling of an address gets past the check, and no URL that is not one."""

from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.domain.targets import (
    Target,
    TargetError,
    check_url,
    embedded,
    is_listed,
    is_public,
    may_go_to,
    parse_networks,
    parse_target,
)

INSIDE = (
    "0.0.0.1", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.9.9",
    "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::", "2002:a00:1::1", "::7f00:1", "2001::1",
)  # fmt: skip
OUTSIDE = ("1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("address", INSIDE)
def test_no_inner_address_is_public(address):
    """Whatever it is wrapped in: reaching it for somebody outside gives something away."""
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_addresses_of_the_internet_are_public(address):
    """Else nobody could be told."""
    assert is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_address_in_a_wrapper_is_what_it_wraps(address):
    """An IPv4 address keeps its nature as an IPv6 one."""
    mapped = IPv6Address((0xFFFF << 32) | int(address))
    translated = IPv6Address(int(ip_address("64:ff9b::")) | int(address))

    assert embedded(mapped) == embedded(translated) == address
    assert is_public(mapped) == is_public(translated) == is_public(address)


def test_listed_networks_are_allowed_also_when_mapped():
    """The setting names a network once, however an address of it is written."""
    networks = parse_networks("10.0.0.0/8, fd00::/8")

    assert is_listed(ip_address("10.9.8.7"), networks)
    assert is_listed(ip_address("::ffff:10.9.8.7"), networks)
    assert is_listed(ip_address("fd00::1"), networks)
    assert not is_listed(ip_address("11.0.0.1"), networks)
    assert parse_networks("") == []


def test_plain_http_is_for_listed_networks_alone():
    """Whoever listens on the way could read and replay."""
    public = ip_address("1.1.1.1")

    assert may_go_to(public, scheme="https", networks=[])
    assert not may_go_to(public, scheme="http", networks=[])
    assert may_go_to(public, scheme="http", networks=parse_networks("1.0.0.0/8"))


def test_a_url_is_taken_apart():
    """Port, path and query are kept as they are."""
    assert parse_target("https://Example.com") == Target("https", "example.com", 443, "/")
    assert parse_target("https://example.com:8443/a%20b?c=d") == Target("https", "example.com", 8443, "/a%20b?c=d")
    assert parse_target("https://[2606:4700::1]:8443/").authority == "[2606:4700::1]:8443"
    assert parse_target("http://example.com:80/").authority == "example.com"


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "https://", "https:///path",
        "https://user@example.com", "https://user:password@example.com", "https://example.com#part",
        "https://exa mple.com", "https://example.com/\n", "https://exämple.com", "https://example.com:0",
        "https://example.com:99999", "https://example.com:port", "https://[::1", "https://2130706433/",
        "https://0x7f000001/", "https://0x7f.1/", "https://127.1/", "https://0177.0.0.1/", "https://127.0.0.1./",
        "https://good.test\\@evil.test/", "https://a..b/", "https://-a.test/", "https://example.com/" + "a" * 2048,
    ],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused(url):
    """Parsers disagree on odd spellings, and between two readings is where a check gets lost."""
    with pytest.raises(TargetError):
        parse_target(url)


@given(st.text(max_size=60))
def test_whatever_is_given_is_taken_apart_or_refused(text):
    """No text makes the reader raise anything else."""
    for url in (text, f"https://{text}/"):
        try:
            target = parse_target(url)
        except TargetError:
            continue
        assert target.host
        assert 0 < target.port < 65536


@pytest.mark.parametrize("url", ["http://example.com/", "https://10.0.0.1/", "https://[::1]/"])
def test_what_could_never_be_sent_to_is_told_when_it_is_added(url):
    """The owner learns it at once, not by a failed delivery."""
    with pytest.raises(TargetError):
        check_url(url, [])
    check_url(url, parse_networks("10.0.0.0/8,::1"))
    check_url("https://example.com/", [])
