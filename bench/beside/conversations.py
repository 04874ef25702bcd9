"""Plays clients of the Runtime API: commands one by one, or whole conversations over one connection."""

import asyncio
import os
import re

import parts
from wire import Wire

# How an answer ends, or what asks for more.
END_OF_ANSWER = re.compile(rb"(\n\n|> |\+ )$")
# Some lines have no answer in some modes.
ANSWER_SECONDS_MAX = 0.25
# What comes unasked comes within this.
LINGER_SECONDS = 0.12


async def converse(path, steps):
    """Each command on a connection of its own, when the last one was answered."""
    answers = []
    for _, text, *_ in steps:
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=1 << 20)
        except OSError as fault:
            answers.append([text, f"no connection: {os.strerror(fault.errno or 0)}"])
            continue
        writer.write(text.encode("latin-1") + b"\n")
        try:
            said = await asyncio.wait_for(reader.read(-1), parts.READ_SECONDS_MAX)
        except (asyncio.TimeoutError, OSError):
            said = b"no answer"
        writer.close()
        answers.append([text, said.decode("latin-1")])
    return answers


class Conversation:
    """One connection: what is written in which pieces, and all that comes back."""

    def __init__(self, wire):
        self.wire, self.events, self.seen = wire, parts.Events(), 0

    async def play(self, steps):
        for step in steps:
            if self.wire.ended_here:
                break
            if step[0] == "answered":
                await self.wire.until(self.is_answered, ANSWER_SECONDS_MAX)
                self.seen = len(self.wire.received)
            else:
                await parts.common_step(self, step)
        if not self.wire.ended_here:
            await self.wire.until(lambda: False, LINGER_SECONDS)
        end = "by the client" if self.wire.ended_here else self.wire.end
        self.wire.close()
        return {"received": self.wire.received.decode("latin-1"), "end": end}

    def is_answered(self):
        return len(self.wire.received) > self.seen and END_OF_ANSWER.search(self.wire.received)

    def take(self):
        return True

    def rest(self):
        return self.wire.received


async def hold_conversation(path, steps):
    """One connection with many commands; what was seen, as plain data."""
    try:
        _, wire = await asyncio.get_running_loop().create_unix_connection(Wire, path)
    except OSError as fault:
        return f"no connection: {os.strerror(fault.errno or 0)}"
    return await Conversation(wire).play(steps)


__all__ = ["converse", "hold_conversation"]
