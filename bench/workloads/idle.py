"""Memory of an idle client: what a proxy keeps for a connection between two requests. Each client
sends one request that is forwarded, and stays. The result is the growth
of the memory between the first 2,000 clients and the last, who come in batches: a proxy may let go of what
it holds for a connection once that has been idle for a while. Server connections are shared."""

import dataclasses
import time

from measuring import kernel
from measuring.clients import SPARE_DESCRIPTORS, idle_clients, raise_descriptors, tls_context
from workloads.model import Must, Skip, Workload

# Pools are filled and tables have their first size by then.
WARM_COUNT = 2000
# The others come in so many batches, and each is idle for so long before the next one comes.
BATCH_COUNT = 4
IDLE_SECONDS = 3


@dataclasses.dataclass(kw_only=True)
class Idle(Workload):
    """Idle clients, perhaps over TLS and of HTTP/2."""

    clients: int = 9000
    is_tls: bool = False
    is_h2: bool = False

    def turn(self, scene, program):
        require_descriptors(self.clients)
        context = tls_context("h2" if self.is_h2 else "http/1.1") if self.is_tls else None
        with scene.proxy(program, self.peer, CLIENTS=self.clients + 100) as proxy:
            scene.wait(proxy, "/up", is_tls=self.is_tls)
            alone = kernel.memory_bytes(proxy.pid)
            with idle_clients(scene.place, proxy.port, WARM_COUNT, context, self.is_h2) as more:
                time.sleep(IDLE_SECONDS)
                before, sockets = kernel.data_bytes(proxy.pid), kernel.socket_bytes()
                for _ in range(BATCH_COUNT):
                    more((self.clients - WARM_COUNT) // BATCH_COUNT)
                    time.sleep(IDLE_SECONDS)
                after, sockets_after = kernel.data_bytes(proxy.pid), kernel.socket_bytes()
                peak = kernel.peak_bytes(proxy.pid)
        count = self.clients - WARM_COUNT
        return {
            "bytes_each": (after - before) / count,
            "kernel_bytes_each": (sockets_after - sockets) / count,
            "idle_mb": alone / (1 << 20),
            "peak_mb": peak / (1 << 20),
        }


def require_descriptors(clients):
    """Every client is a descriptor here, and one of the proxy."""
    most = raise_descriptors()
    if most < clients + SPARE_DESCRIPTORS:
        raise Skip(f"{clients} clients need {clients + SPARE_DESCRIPTORS} descriptors, and `ulimit -Hn` is {most}")


def idle(name, about, is_default=True, **more):
    return Idle(
        name=name, group="idle", about=about, peer=name.replace("idle", "crowd"), metric="bytes_each",
        musts=[Must("bytes_each", 1.0)], is_default=is_default, rounds_max=1, **more,
    )


WORKLOADS = [
    idle("idle", "memory of an idle client"),
    idle("idle-tls", "memory of an idle client over TLS 1.3", is_tls=True),
    idle("idle-h2", "memory of an idle client of HTTP/2", is_h2=True, is_default=False),
    idle("idle-h2-tls", "memory of an idle client of HTTP/2 over TLS 1.3", is_h2=True, is_tls=True, is_default=False),
]
