"""A map that chooses one of up to 1,000 backends by the name in Host."""

import dataclasses

from workloads.model import Curve
from workloads.traffic import Traffic, over_hosts

CURVE = Curve("backends", "A request to one of many backends", "backends", "cpu_us", "CPU a request, us")


@dataclasses.dataclass(kw_only=True)
class Backends(Traffic):
    """Requests go over all backends in turn, with a stride."""

    def turn(self, scene, program):
        lines = "".join(f"host{n}.example b{n}\n" for n in range(self.values["COUNT"]))
        (scene.directory / self.values["HOSTS"]).write_text(lines)
        return super().turn(scene, program)


def backends(count):
    return Backends(
        name=f"backends-{count}", group="backends", about=f"a map over Host chooses one of {count:,} backends",
        peer="backends", script=over_hosts(count), host="host0.example", values={"COUNT": count, "HOSTS": f"hosts-{count}.map"},
        is_default=True, curve=CURVE, x=count,
    )


WORKLOADS = [backends(count) for count in (1, 10, 100, 1000)]
