"""Fairness: two clients that pipeline at full speed, and a third that asks 200 times a second. How long
the third waits is what the others take from it."""

import concurrent.futures
import dataclasses

from measuring import kernel
from workloads.model import Must, Workload

PIPELINED = 32
RATE = 200
P99_US_MAX = 2000
SCRIPT = f"""
init = function()
  local one = {{}}
  for n = 1, {PIPELINED} do one[n] = wrk.format("GET", "/0") end
  requests = table.concat(one)
end
request = function() return requests end
"""


@dataclasses.dataclass(kw_only=True)
class Fairness(Workload):
    """The latency of a client among others that ask without pause."""

    def turn(self, scene, program):
        with scene.proxy(program, self.peer) as proxy:
            scene.wait(proxy, "/0")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                # The load of the others begins before and ends after; it yields to the third.
                greedy = pool.submit(
                    scene.wrk, proxy.port, "/0", 2, scene.seconds + 2, script=SCRIPT, niceness=19
                )
                self.third(scene, proxy, 0.5)
                used, counted = kernel.used_during(proxy.pid, lambda: self.third(scene, proxy, scene.seconds))
                others = greedy.result()
        return {
            "rate": others["rate"],
            "cpu_us": used["cpu_us"] / (others["rate"] * scene.seconds),
            "p50_us": counted["p50_us"],
            "p99_us": counted["p99_us"],
            "p999_us": counted["p999_us"],
        }

    def third(self, scene, proxy, seconds):
        return scene.load(proxy.port, "http", 1, seconds, ["--path", "/0", "--rate", RATE], may_lag=True)


WORKLOADS = [
    Fairness(
        name="fairness", group="fairness", about="a client beside two that pipeline at full speed", peer="keepalive",
        metric="p99_us", musts=[Must("p99_us", limit=P99_US_MAX)], is_default=True, rounds_max=2,
    )
]
