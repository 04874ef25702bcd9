"""Many connections: 5,000 and 9,000 idle ones beside 64 active ones, whose latency they should leave
as it is; and as many active ones."""

import dataclasses

from measuring import kernel
from measuring.clients import idle_clients
from workloads.idle import require_descriptors
from workloads.model import Curve, Must, Workload
from workloads.traffic import MB, Traffic

ACTIVE = 64
RATE = 3000
CURVE = Curve("crowd", "Idle clients beside 64 active ones", "idle clients", "p99_tenth_us", "p99 of the active in the median tenth of a second, us")
OPENING_SECONDS = 3
# So much more than without idle clients, in the same turn.
GROWTH_MAX = 1.1


@dataclasses.dataclass(kw_only=True)
class Crowd(Workload):
    """Requests at a fixed rate, first alone and then beside idle clients."""

    idle: int

    def load(self, scene, proxy, seconds):
        words = ["--path", "/1k", "--rate", RATE]
        return kernel.used_during(
            proxy.pid, lambda: scene.load(proxy.port, "http", ACTIVE, seconds, words, may_lag=True)
        )

    def turn(self, scene, program):
        require_descriptors(self.idle)
        with scene.proxy(program, self.peer, CLIENTS=self.idle + 400) as proxy:
            scene.wait(proxy, "/1k")
            self.load(scene, proxy, 0.5)
            _, alone = self.load(scene, proxy, scene.seconds)
            before, sockets = kernel.data_bytes(proxy.pid), kernel.socket_bytes()
            with idle_clients(scene.place, proxy.port, self.idle):
                memory = kernel.data_bytes(proxy.pid) - before
                sockets = kernel.socket_bytes() - sockets
                self.load(scene, proxy, 0.5)
                used, beside = self.load(scene, proxy, scene.seconds)
        return {
            "cpu_us": used["cpu_us"] / beside["requests"],
            "p50_us": beside["p50_us"],
            "p99_us": beside["p99_us"],
            "p999_us": beside["p999_us"],
            "p99_tenth_us": beside["p99_tenth_us"],
            "p99_alone_us": alone["p99_tenth_us"],
            "p99_growth": beside["p99_tenth_us"] / alone["p99_tenth_us"],
            "crowd_mb": memory / MB,
            "kernel_mb": sockets / MB,
            "unsent": beside["unsent"],
        }


@dataclasses.dataclass(kw_only=True)
class Active(Traffic):
    """So many active connections. Opening them is part of it, and hence a small one."""

    def turn(self, scene, program):
        # A client and a server connection each, in one process.
        require_descriptors(2 * self.connections)
        return super().turn(scene, program)

    def load(self, scene, port, seconds):
        return super().load(scene, port, seconds + OPENING_SECONDS)


def crowd(idle):
    return Crowd(
        name=f"crowd-{idle}", group="crowd", about=f"{ACTIVE} active clients beside {idle:,} idle ones", peer="crowd",
        metric="p99_tenth_us", musts=[Must("p99_growth", limit=GROWTH_MAX)] if idle else [], is_default=True, rounds_max=2 if idle > 5000 else 1,
        curve=CURVE, x=idle, idle=idle,
    )


def active(count):
    return Active(
        name=f"active-{count}", group="active", about=f"{count:,} active connections", peer="crowd", connections=count,
        values={"CLIENTS": count + 100}, tool="http", words=["--timeout", "20s"],
    )


WORKLOADS = [*map(crowd, (0, 5000, 9000)), *map(active, (5000, 9000))]
