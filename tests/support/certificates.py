"""A certificate authority of the test's own, and certificates by it for names that exist nowhere else."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
END = BEGIN + timedelta(days=36500)


def server_context(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """Return how a server speaks TLS under ``name``, and the file by which clients know its authority."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _name("Docstage test authority")
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    authority = _builder(issuer, issuer, authority_key).add_extension(constraints, critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName(name)])
    leaf = _builder(_name(name), issuer, key).add_extension(names, critical=False)
    trusted, chain = folder / "authority.pem", folder / "server.pem"
    trusted.write_bytes(_pem(authority.sign(authority_key, hashes.SHA256())))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain.write_bytes(private + _pem(leaf.sign(authority_key, hashes.SHA256())))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context, trusted


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(END)
    )
