"""A TCP connection whose bytes, end and reset can be awaited, and which can end in each way."""

import asyncio
import contextlib
import socket
import struct

OPEN, CLOSED, RESET = "open", "closed", "reset"


class Wire(asyncio.Protocol):
    """Both clients and servers speak through it."""

    def __init__(self, accepted=None):
        self.received, self.end, self.accepted = bytearray(), OPEN, accepted
        self.transport, self.waiting = None, None
        self.ended_here = self.is_half = False

    def connection_made(self, transport):
        self.transport = transport
        if self.accepted:
            self.accepted(self)

    def data_received(self, data):
        self.received += data
        self.wake()

    def eof_received(self):
        if self.end == OPEN:
            self.end = CLOSED
        self.wake()
        return True

    def connection_lost(self, fault):
        if fault is not None and not self.ended_here:
            self.end = RESET
        elif self.end == OPEN and not self.ended_here:
            self.end = CLOSED
        self.wake()

    def wake(self):
        if self.waiting and not self.waiting.done():
            self.waiting.set_result(None)

    async def until(self, holds, seconds):
        """Waits until `holds()` is true, the other side has ended, or the time is over; whether it holds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not (held := holds()) and self.end == OPEN and not self.ended_here:
            self.waiting = loop.create_future()
            try:
                await asyncio.wait_for(self.waiting, deadline - loop.time())
            except asyncio.TimeoutError:
                return holds()
        return held or holds()

    def send(self, data):
        if not self.ended_here and not self.is_half and not self.transport.is_closing():
            self.transport.write(data)

    def half_close(self):
        self.is_half = True
        with contextlib.suppress(OSError, RuntimeError):
            if not self.transport.is_closing():
                self.transport.write_eof()

    # What TLS knows besides: without it, a closing alert is nothing, and an end without one is any end.
    def notify(self):
        pass

    def end_without_alert(self):
        self.half_close()

    def cut(self):
        self.close()

    def close(self):
        self.ended_here = True
        self.transport.close()
        self.wake()

    def reset(self):
        self.ended_here = True
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        self.transport.abort()
        self.wake()


async def connected(address, port):
    """A new connection; None when it is refused."""
    loop = asyncio.get_running_loop()
    try:
        _, wire = await loop.create_connection(Wire, address, port)
    except OSError:
        return None
    return wire
