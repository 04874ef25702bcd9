"""What hostile clients of HTTP/2 cost: processor time of the proxy for 100,000 of their frames.

Each attack writes frames that were made before it began, as fast as the proxy takes them, and reads
and drops what comes back. Who is cut off connects again, until all frames are sent.
"""

import dataclasses
import functools
import statistics
import time

from measuring import kernel
from workloads.frames import ATTACKS, FRAMES, Frames, connection
from workloads.model import Must, Workload

# An attack on one program ends after this.
SECONDS_MAX = 20
# What is too short to be compared.
ALLOWED_MS = 5
GROWN_MB_MAX = 64


@functools.cache
def frames_of(attack):
    """The frames of an attack, made once."""
    return Frames(*ATTACKS[attack])


@dataclasses.dataclass(kw_only=True)
class Attack(Workload):
    """One attack on a program that is started for it."""

    attack: str

    def turn(self, scene, program):
        frames = frames_of(self.attack)
        with scene.proxy(program, self.peer) as proxy:
            scene.wait(proxy, "/")
            pid = proxy.pid
            before, memory, grown = kernel.usage(pid)["cpu_us"], kernel.data_bytes(pid), 0
            deadline = time.monotonic() + SECONDS_MAX
            sent, lengths, cuts = 0, [], 0
            while sent < frames.count and time.monotonic() < deadline:
                with scene.place.inside("client"):
                    count, is_cut = connection(scene.place.proxy, proxy.port, frames, frames.count - sent, deadline)
                sent += max(count, 1)
                lengths.append(count)
                cuts += is_cut
                grown = max(grown, kernel.data_bytes(pid) - memory)
                if proxy.process.poll() is not None:
                    raise RuntimeError("the program has ended")
                if not is_cut:
                    break
            took = (kernel.usage(pid)["cpu_us"] - before) / 1e3
        return {
            "attack_ms": took * FRAMES / max(sent, 1) if frames.count == FRAMES else took,
            # All of them where it is never cut.
            "frames_each": statistics.median(lengths),
            "connections": len(lengths),
            "cut": cuts,
            "grown_mb": grown / (1 << 20),
        }


WORKLOADS = [
    Attack(
        name=f"attack-{name}", group="attack", about=f"HTTP/2: {make.__doc__ or name}".rstrip("."), peer="attack",
        metric="attack_ms", musts=[Must("attack_ms", 1.0, ALLOWED_MS), Must("grown_mb", limit=GROWN_MB_MAX)],
        rounds_max=3, attack=name,
    )
    for name, (make, _) in ATTACKS.items()
]
