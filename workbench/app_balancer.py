"""One address in front of several servers of the app, so that a room uses more than one processor.

Streamlit keeps a session in the process that opened it, so every visitor stays with one server: its number is in a cookie,
which that server sets with each page (`app/session/protection.py`). A visitor without a cookie goes to the next server in
turn. After the head of its first request a connection is only bytes: websockets, uploads and pictures pass as they are.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
from collections.abc import Sequence

COOKIE = "workbench_server"
SERVER = "WORKBENCH_SERVER"  # in the environment of a server: its number among those behind one address
LONGEST_HEAD = 2**16
OF_COOKIE = re.compile(rb"\r\ncookie:[^\r]*?\b" + COOKIE.encode() + rb"=(\d{1,3})\b", re.IGNORECASE)


class Balancer:
    """Passes each connection on to one of the servers on these ports of this machine."""

    def __init__(self, ports: Sequence[int], address: str = "127.0.0.1") -> None:
        self.ports, self.address = ports, address
        self.turn = itertools.cycle(range(len(ports)))

    def server_of(self, head: bytes) -> int:
        """The number of the server for a request: that of its cookie, else the next in turn."""
        found = OF_COOKIE.search(head)
        return int(found[1]) if found and int(found[1]) < len(self.ports) else next(self.turn)

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a visitor with a server until one of them hangs up."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            answers, requests = await asyncio.open_connection(self.address, self.ports[self.server_of(head)])
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.close()  # no request, or no server
            return
        requests.write(head)
        await asyncio.gather(_copy(reader, requests), _copy(answers, writer))

    async def serve(self, host: str, port: int) -> None:
        """Listen until SIGTERM or Ctrl-C."""
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        async with await asyncio.start_server(self.pass_on, host, port, limit=LONGEST_HEAD):
            await stopped.wait()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy a stream until either end closes."""
    try:
        while block := await reader.read(2**16):
            writer.write(block)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
