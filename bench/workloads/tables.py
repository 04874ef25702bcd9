"""What stick tables of up to a million entries cost: memory of an entry, and the processor time of a
request that tracks a key, less that of one with the same header that does not. Tables are filled
by requests, one key each."""

import dataclasses
import re
import time

from measuring import kernel
from measuring.kernel import free_port
from measuring.waits import longest_answer_ms
from workloads.model import Curve, Must, Workload
from workloads.rules import cost_us, script

ENTRIES = 1_000_000
# Differences below this are those of the measurement.
NOISE_US = 0.1
# A prime, so that each key comes once before any comes again, and no two neighbours follow each other.
STRIDE = 611953
FILL_SECONDS = 2
EXPIRE_SECONDS = 20
# Lua: the text of key `k`.
KEYS = {
    "ip": '10 + math.floor(k / 16777216) .. "." .. math.floor(k / 65536) % 256 .. "." .. math.floor(k / 256) % 256 .. "." .. k % 256',
    "text": 'string.format("user-%08d-session", k)',
}
KEYS["expiring"] = KEYS["ip"]
# Lua: the number of the key of the n-th request. The last kind floods the table: each request evicts an entry.
NUMBERS = {"random_us": f"n * {STRIDE} % COUNT", "hot_us": "7", "new_us": "COUNT + n"}


def request(table, number, count):
    """What wrk asks for: an expression of Lua."""
    number = number.replace("COUNT", str(count))
    key = re.sub(r"\bk\b", f"({number})", KEYS[table])
    return f'wrk.format("GET", "/", {{["X-Key"] = {key}}})'


def used(proxy, table):
    """The entries of a table."""
    return int(re.search(rf"^# table: {table},.* used:(\d+)", proxy.ask("show table"), re.M)[1])


def fill(scene, proxy, port, table, count):
    """Fills a table by requests, or until nothing is added."""
    sent = before = 0
    while (now := used(proxy, table)) < count and (now > before or not sent):
        before = now
        asked = request(table, "(n - 1) % COUNT", count)
        counted = scene.wrk(port, "/", 8, FILL_SECONDS, script=script(asked, sent + 1))
        sent += counted["requests"]
    if now < count and table != "expiring":
        raise RuntimeError(f"only {now:,} of {count:,} entries")


@dataclasses.dataclass(kw_only=True)
class Table(Workload):
    """One table of so many entries."""

    table: str
    entries: int

    def ports(self):
        return {f"PORT_{name.upper()}": free_port() for name in KEYS}

    def turn(self, scene, program):
        ports = self.ports()
        values = ports | {"ENTRIES": self.entries, "EXPIRE_SECONDS": EXPIRE_SECONDS}
        with scene.proxy(program, self.peer, **values) as proxy:
            scene.wait(proxy, "/")
            return self.measure(scene, proxy, ports)

    def measure(self, scene, proxy, ports):
        port = ports[f"PORT_{self.table.upper()}"]
        # Buffers and pools have their size after it.
        cost_us(scene, proxy, proxy.port, request(self.table, "n", self.entries), 1)
        before = kernel.data_bytes(proxy.pid)
        fill(scene, proxy, port, self.table, self.entries)
        found = {"entry_bytes": (kernel.data_bytes(proxy.pid) - before) / self.entries}
        for name, number in NUMBERS.items():
            if name != self.metric and self.is_brief:
                continue
            asked = request(self.table, number, self.entries)
            base = cost_us(scene, proxy, proxy.port, asked, scene.seconds)
            whole = cost_us(scene, proxy, port, asked, scene.seconds)
            found[name] = max(whole - base, 0.0)
            if name == self.metric:
                found["cpu_us"] = whole
        return found | {"peak_mb": kernel.peak_bytes(proxy.pid) / (1 << 20)}


@dataclasses.dataclass(kw_only=True)
class Waits(Table):
    """The slowest answer while a whole table is listed, expires or is cleared."""

    def measure(self, scene, proxy, ports):
        fill(scene, proxy, ports["PORT_IP"], "ip", self.entries)

        def wait(work):
            return longest_answer_ms(scene.place, proxy.port, "/", work)

        found = {"list_wait_ms": wait(lambda: proxy.ask("show table ip"))}
        fill(scene, proxy, ports["PORT_EXPIRING"], "expiring", self.entries)
        found["expiry_wait_ms"] = wait(lambda: time.sleep(EXPIRE_SECONDS + 5))
        return found | {"clear_wait_ms": wait(lambda: proxy.ask("clear table ip"))}


def table(name, count, is_default, curve=None, musts=True):
    targets = [
        Must("entry_bytes", 1.0),
        Must("random_us", 0.7, NOISE_US),
        Must("hot_us", 1.0, NOISE_US),
        Must("hot_us", limit=0.2 + NOISE_US),
        Must("new_us", 1.0, NOISE_US),
    ]
    return Table(
        name=f"table-{name}-{count}", group="tables", about=f"a stick table ({name}) of {count:,} entries", peer="tables",
        metric="random_us", musts=targets if musts else [], is_default=is_default, rounds_max=1, curve=curve, x=count,
        table=name, entries=count,
    )


CURVE = Curve("tables", "A request that tracks a random key", "entries", "cpu_us", "CPU a request, us")
WORKLOADS = [
    *(table("ip", count, True, CURVE, False) for count in (1000, 10_000, 100_000)),
    table("ip", ENTRIES, True, CURVE),
    table("text", ENTRIES, False),
    Waits(
        name="table-waits", group="tables", about="the slowest answer while a table of 1,000,000 is listed, expires, is cleared",
        peer="tables", metric="list_wait_ms", rounds_max=1, table="ip", entries=ENTRIES,
    ),
]
