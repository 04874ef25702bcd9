"""Latency at equal rates: 50, 70 and 90 % of the highest rate that HAProxy reaches here. Each request
is due at its time and its latency counts from then, so that a proxy that stops is not asked less."""

import dataclasses

from workloads.model import Must, Workload
from workloads.traffic import per_request
from measuring import kernel

CONNECTIONS = 64
PEAK_TURNS = 3


@dataclasses.dataclass(kw_only=True)
class Latency(Workload):
    """Requests on kept connections at a share of the peak rate."""

    percent: int

    def prepare(self, scene, programs):
        """The peak is measured once for all of them."""
        if scene.peak_rate is None:
            haproxy = next((one for one in programs if one.name == "haproxy"), programs[0])
            rates = [self.peak(scene, haproxy) for _ in range(PEAK_TURNS)]
            scene.peak_rate = sorted(rates)[PEAK_TURNS // 2]
            print(f"  peak rate of {haproxy.name}: {scene.peak_rate:,.0f} requests a second")

    def peak(self, scene, program):
        with scene.proxy(program, self.peer) as proxy:
            scene.wait(proxy, "/1k")
            self.load(scene, proxy, 0.5)
            return self.load(scene, proxy, 1)["rate"]

    def load(self, scene, proxy, seconds, *words):
        return scene.load(proxy.port, "http", CONNECTIONS, seconds, ["--path", "/1k", *words], may_lag=True)

    def turn(self, scene, program):
        rate = round(scene.peak_rate * self.percent / 100)
        with scene.proxy(program, self.peer) as proxy:
            scene.wait(proxy, "/1k")
            self.load(scene, proxy, 0.5, "--rate", rate)
            used, counted = kernel.used_during(
                proxy.pid, lambda: self.load(scene, proxy, scene.seconds, "--rate", rate)
            )
        return per_request(used, counted) | {"asked_rate": rate}


WORKLOADS = [
    Latency(
        name=f"latency-{percent}", group="latency", about=f"latency at {percent} % of HAProxy's peak rate", peer="keepalive",
        metric="p99_tenth_us", musts=[Must("p99_tenth_us", 1.0), Must("p999_tenth_us", 1.0)], is_default=True, percent=percent,
    )
    for percent in (50, 70, 90)
]
