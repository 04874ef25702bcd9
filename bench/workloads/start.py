"""The start with up to 5,000 certificates, and with up to 1,000 backends of 100 servers each: time until
the first request is answered, processor time until then, and memory."""

import dataclasses
import itertools
import os

from certificates import Authority
from measuring import kernel
from workloads.model import Curve, Must, Workload

MUSTS = [Must("start_ms", 1.0), Must("data_mb", 1.0)]


@dataclasses.dataclass(kw_only=True)
class Start(Workload):
    """A start, and nothing else."""

    values: dict
    is_tls: bool = False
    path: str = "/1k"

    def turn(self, scene, program):
        if self.is_tls:
            issue(scene, self.values["COUNT"])
        with scene.proxy(program, self.peer, **self.values) as proxy:
            seconds = scene.wait(proxy, self.path, is_tls=self.is_tls, name="www0.example.com" if self.is_tls else None)
            return {
                "start_ms": seconds * 1e3,
                "start_cpu_ms": kernel.usage(proxy.pid)["cpu_us"] / 1e3,
                "data_mb": kernel.data_bytes(proxy.pid) / (1 << 20),
                "idle_mb": kernel.memory_bytes(proxy.pid) / (1 << 20),
                "peak_mb": kernel.peak_bytes(proxy.pid) / (1 << 20),
            }


def issue(scene, count):
    """So many certificates, unless they are there."""
    folder = scene.directory / f"certificates-{count}"
    if folder.exists():
        return
    authority = Authority("bench")
    making = scene.directory / f"making-{count}"
    making.mkdir()
    for number in range(count):
        (making / f"{number}.pem").write_text(authority.issue(f"www{number}.example.com"))
    os.rename(making, folder)


def certificates(count):
    curve = Curve("start-certificates", "The start with certificates", "certificates", "start_ms", "time to the first answer, ms")
    return Start(
        name=f"start-certificates-{count}", group="start", about=f"the start with {count:,} certificates (P-256)",
        peer="start-certificates", metric="start_ms", musts=MUSTS, is_default=True, rounds_max=3 if count >= 5000 else 1, curve=curve, x=count,
        values={"COUNT": count}, is_tls=True, path="/",
    )


def servers(backends, each):
    curve = Curve("start-servers", "The start with servers", "servers", "start_ms", "time to the first answer, ms")
    count = backends * each
    return Start(
        name=f"start-servers-{count}", group="start", about=f"the start with {backends:,} backends of {each} servers",
        peer="start-servers", metric="start_ms", musts=MUSTS, is_default=True, rounds_max=3 if count >= 100_000 else 1, curve=curve, x=count,
        values={"BACKENDS": backends, "SERVERS": each},
    )


COUNTS = (100, 1000, 5000)
WORKLOADS = [*map(certificates, COUNTS), *itertools.starmap(servers, ((10, 100), (100, 100), (1000, 100)))]
