"""What a workload is: a row of the table, and perhaps a point of a curve."""

import dataclasses
import typing

from measuring.peers import PEERS
from reporting.metrics import METRICS


class Skip(Exception):
    """A workload cannot be run here; the text says why."""


class Must(typing.NamedTuple):
    """What Ballast must reach: at most a share of HAProxy's value, or at most a value."""

    metric: str
    share: float | None = None
    # So much above the share is within the error of the measurement, in the unit of the metric.
    plus: float = 0.0
    limit: float | None = None

    def __str__(self):
        allowance = f" + {self.plus:g}" if self.plus else ""
        what = f"{self.share:.2f} of HAProxy's{allowance}" if self.limit is None else f"{self.limit:g}"
        return f"{METRICS[self.metric].head} <= {what}"


class Curve(typing.NamedTuple):
    """Workloads that differ in one number: how cost grows with it."""

    name: str
    title: str
    x: str
    metric: str
    y: str


@dataclasses.dataclass(kw_only=True)
class Workload:
    """`turn` measures one program once, and gives numbers by name: those of `reporting.metrics`."""

    name: str
    group: str
    # What is measured, in a few words.
    about: str
    # The directory of `bench/peers` with the configuration of every program.
    peer: str
    # The number of which the share of HAProxy's is the result.
    metric: str = "cpu_us"
    musts: list = dataclasses.field(default_factory=list)
    place: str = "loopback"
    # Part of what runs when no workload is named.
    is_default: bool = False
    # At most so many rounds in a run of a whole set: for what takes long, or hardly varies.
    rounds_max: int | None = None
    curve: Curve | None = None
    x: float = 0

    @property
    def is_brief(self):
        """A point of a curve that nothing is concluded from: in a run of a whole set it is measured once."""
        return bool(self.curve) and not self.musts

    def fitting(self, programs):
        """The programs that can do it: those that have a configuration for it."""
        return [program for program in programs if (PEERS / self.peer / program.file).exists()]

    def turn(self, scene, program):
        raise NotImplementedError

    def over_veth(self, **changes):
        """The same workload where neither side of the proxy is loopback."""
        named = {"name": f"{self.name}-veth", "about": f"{self.about}, over veth"}
        return dataclasses.replace(self, **named, place="veth", curve=None, **changes)
