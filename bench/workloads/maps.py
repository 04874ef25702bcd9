"""Look-ups in maps of up to 100,000 entries, by every match method, as in `workloads/rules.py`; and
how long the slowest client waits while such maps are changed."""

import dataclasses
import re

from measuring import kernel
from measuring.kernel import free_port
from measuring.waits import longest_answer_ms
from workloads.model import Curve, Must, Workload
from workloads.rules import NOISE_US, Rules

ENTRIES = 100_000
EXPRESSIONS = 10_000

KEYS = 'wrk.format("GET", "/k" .. (n * 7919 % COUNT) .. "/page.html")'
NAMES = 'wrk.format("GET", "/", {Host = "www.k" .. (n * 7919 % COUNT) .. ".example"})'
ADDRESSES = 'wrk.format("GET", "/", {["X-Ip"] = "10." .. (n % 256) .. "." .. (n * 7 % 256) .. ".9"})'
# Never one twice, over all expressions; and always the same, which HAProxy has in a cache.
CHANGING = 'wrk.format("GET", "/r" .. (n * 7919 % COUNT) .. "/page/" .. n)'
HOT = 'wrk.format("GET", "/r" .. math.floor(COUNT / 2) .. "/page/17")'
# The n-th line of a map's file.
LINES = {
    "map_str": "/k{n}/page.html v{n}\n",
    "map_beg": "/k{n}/ v{n}\n",
    "map_end": ".k{n}.example v{n}\n",
    "map_dom": "k{n}.example v{n}\n",
    "map_sub": "/k{n}/ v{n}\n",
    "map_ip": "10.{a}.{b}.0/{bits} v{n}\n",
    "map_reg": "^/r{n}/[a-z]+/[0-9]+$ v{n}\n",
}
STRINGS = Curve("map-str", "A look-up in a map of strings", "entries", "cpu_us", "CPU a request, us")
REGULAR = Curve(
    "map-reg", "A look-up in a map of regular expressions", "entries", "cpu_us", "CPU a request, us"
)


def write_map(scene, method, count):
    """The file of a map, unless it is there; returns its name."""
    name = f"{method}-{count}.map"
    file = scene.directory / name
    if not file.exists():
        parts = ({"n": n, "a": n % 256, "b": n // 256 % 256, "bits": 24 + n // 65536} for n in range(count))
        file.write_text("".join(LINES[method].format(**part) for part in parts))
    return name


@dataclasses.dataclass(kw_only=True)
class Lookup(Rules):
    """One look-up for each request."""

    method: str
    sample: str

    def turn(self, scene, program):
        name = write_map(scene, self.method, self.count)
        converter = "map" if self.method == "map_str" else self.method
        self.values = {"SAMPLE": self.sample, "CONVERTER": converter, "MAP": name}
        return super().turn(scene, program)


def lookup(name, method, sample, asked, count=ENTRIES, share=1.0, curve=None, is_default=False):
    return Lookup(
        name=name, group="maps", about=f"a look-up in a map ({method}) of {count:,} entries", peer="maps",
        metric="added_us", musts=[Must("added_us", share, NOISE_US)], is_default=is_default, rounds_max=2 if count == ENTRIES or share < 1 else 1,
        curve=curve, x=count, asked=asked, count=count, method=method, sample=sample,
    )


@dataclasses.dataclass(kw_only=True)
class Change(Workload):
    """The slowest answer while maps of 100,000 entries are filled anew, or single entries are changed."""

    def turn(self, scene, program):
        name = f"{scene.directory}/{write_map(scene, 'map_str', ENTRIES)}"
        values = {"PORT_RULES": free_port(), "SAMPLE": "path", "CONVERTER": "map", "MAP": f"map_str-{ENTRIES}.map"}
        with scene.proxy(program, self.peer, **values) as proxy:
            scene.wait(proxy, "/", values["PORT_RULES"])
            port = values["PORT_RULES"]
            found = {
                f"{what}_wait_ms": longest_answer_ms(scene.place, port, "/k1/page.html", lambda: work(proxy, name))
                for what, work in (("renewal", renew), ("change", change))
            }
            return found | {"peak_mb": kernel.peak_bytes(proxy.pid) / (1 << 20)}


def renew(proxy, name):
    """Fills a new version of the map, and commits it."""
    version = re.search(r"created: (\d+)", proxy.ask(f"prepare map {name}"))[1]
    for first in range(0, ENTRIES, 200):
        lines = "\n".join(f"/k{n}/page.html w{n}" for n in range(first, first + 200))
        if fault := proxy.ask(f"add map @{version} {name} <<\n{lines}\n"):
            raise RuntimeError(f"add map: {fault}")
    proxy.ask(f"commit map @{version} {name}")


def change(proxy, name):
    """Changes single entries."""
    for n in range(200):
        proxy.ask(f"set map {name} /k{n}/page.html x{n}; add map {name} /new{n}/ x")
        proxy.ask(f"del map {name} /new{n}/")


WORKLOADS = [
    lookup("map-str-100", "map_str", "path", KEYS, 100, curve=STRINGS, is_default=True),
    lookup("map-str-10000", "map_str", "path", KEYS, 10_000, curve=STRINGS, is_default=True),
    lookup("map-str", "map_str", "path", KEYS, curve=STRINGS, is_default=True),
    lookup("map-beg", "map_beg", "path", KEYS),
    lookup("map-end", "map_end", "hdr(host)", NAMES),
    lookup("map-dom", "map_dom", "hdr(host)", NAMES),
    lookup("map-sub", "map_sub", "path", KEYS),
    lookup("map-ip", "map_ip", "hdr_ip(x-ip)", ADDRESSES),
    lookup("map-reg-100", "map_reg", "path", CHANGING, 100, curve=REGULAR),
    lookup("map-reg-1000", "map_reg", "path", CHANGING, 1000, curve=REGULAR, is_default=True),
    lookup("map-reg", "map_reg", "path", CHANGING, EXPRESSIONS, 0.5, curve=REGULAR, is_default=True),
    lookup("map-reg-hot", "map_reg", "path", HOT, EXPRESSIONS),
    Change(
        name="map-changes", group="maps", about="the slowest answer while maps of 100,000 entries change", peer="maps",
        metric="renewal_wait_ms", rounds_max=1,
    ),
]
