"""What a document may point to outside itself: a port that counts connections and packets, and a file with a secret."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

MARK = "Zanzibar"


@dataclass(slots=True)
class Trap:
    """Where a document may point, and who came."""

    port: int
    file: Path
    visits: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """An address that answers everybody with the secret."""
        return f"http://127.0.0.1:{self.port}/secret"


class _Packets(asyncio.DatagramProtocol):
    def __init__(self, visits: list[str]) -> None:
        self._visits = visits

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Count a packet (called by the event loop)."""
        del data, addr
        self._visits.append("udp")


@asynccontextmanager
async def trap(folder: Path) -> AsyncIterator[Trap]:
    """Listen on one port with TCP and UDP, and keep the secret in a file."""
    visits: list[str] = []

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append("tcp")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(MARK)}\r\n\r\n{MARK}".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    packets, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Packets(visits), local_addr=("127.0.0.1", port)
    )
    file = folder / "secret"
    file.write_text(f"BT /F1 24 Tf 72 700 Td ({MARK}) Tj ET")
    try:
        yield Trap(port, file, visits)
    finally:
        packets.close()
        server.close()
        await server.wait_closed()
