"""What rules cost: typical ones, and long lists of them. Each frontend answers
by itself, so that nothing but rules is between a request and its answer; the cost of a request to
a frontend without rules, in the same turn, is taken off."""

import dataclasses

from measuring import kernel
from measuring.kernel import free_port
from workloads.model import Curve, Must, Workload

# So many copies of a typical rule stand in a list.
COPIES = 50
CONNECTIONS = 8
# Differences below these are those of the measurement.
NOISE_NS, NOISE_US = 10, 0.3

# What wrk asks for: the n-th request, in Lua.
ONE = 'wrk.format("GET", "/some/path?a=1", {Host = "www.example.com", ["X-Ip"] = "192.0.2.1"})'
HOSTS = 'wrk.format("GET", "/some/path", {Host = "host" .. (n * 7919 % COUNT) .. ".example"})'


def script(expression, first=1):
    """A program for wrk: its n-th request, from `first` on, is the value of the expression."""
    return f"local n = {first - 1}\nrequest = function() n = n + 1 return {expression} end\n"


def cost_us(scene, proxy, port, expression, seconds, first=1):
    """Microseconds of processor time a request."""
    more = {"script": script(expression, first)}
    used, counted = kernel.used_during(
        proxy.pid, lambda: scene.wrk(port, "/", CONNECTIONS, seconds, **more)
    )
    return used["cpu_us"] / counted["requests"]


@dataclasses.dataclass(kw_only=True)
class Rules(Workload):
    """Rules of which the result is the cost of all of them, or of one of `rules`."""

    # What wrk asks for: an expression of Lua for the n-th request, where COUNT is `count`.
    asked: str = ONE
    count: int = 1
    rules: int = 1
    # Further values of the configuration.
    values: dict = dataclasses.field(default_factory=dict)

    def turn(self, scene, program):
        expression = self.asked.replace("COUNT", str(self.count))
        values = {"PORT_RULES": free_port()} | self.values
        with scene.proxy(program, self.peer, **values) as proxy:
            for port in (proxy.port, values["PORT_RULES"]):
                scene.wait(proxy, "/", port)
            cost_us(scene, proxy, values["PORT_RULES"], expression, 1)  # warm
            base = cost_us(scene, proxy, proxy.port, expression, scene.seconds)
            whole = cost_us(scene, proxy, values["PORT_RULES"], expression, scene.seconds)
            peak = kernel.peak_bytes(proxy.pid)
        added = max(whole - base, 0.0)
        found = {"cpu_us": whole, "added_us": added, "peak_mb": peak / (1 << 20)}
        return found | ({"rule_ns": added * 1e3 / self.rules} if self.rules > 1 else {})


def rule(name, line):
    return Rules(
        name=f"rule-{name}", group="rules", about=f"one of {COPIES} rules: {line}", peer="rules", metric="rule_ns",
        musts=[Must("rule_ns", 1.0, NOISE_NS)], rounds_max=3, rules=COPIES,
        values={"RULE": line, "COUNT": COPIES},
    )


def hosts(count):
    curve = Curve("hosts", "Rules over one header", "rules", "cpu_us", "CPU a request, us")
    return Rules(
        name=f"hosts-{count}", group="hosts", about=f"{count:,} rules over Host", peer="hosts", metric="added_us",
        musts=[Must("added_us", 0.3 if count >= 1000 else 1.0, NOISE_US)], is_default=True,
        rounds_max=2 if count >= 1000 else 1, curve=curve, x=count, asked=HOSTS, count=count, values={"COUNT": count},
    )


def acls(count):
    curve = Curve("acls", "ACLs of five kinds, a rule each", "ACLs", "cpu_us", "CPU a request, us")
    return Rules(
        name=f"acls-{count}", group="acls", about=f"{count:,} ACLs of five kinds", peer="acls", metric="added_us",
        musts=[Must("added_us", 1.0, NOISE_US)], is_default=True, rounds_max=1, curve=curve, x=count,
        values={"FIFTHS": count // 5},
    )


TYPICAL = {
    "set-header": "set-header X-A fixed",
    "set-header-sample": "set-header X-A %[src]",
    "set-var": "set-var(txn.a) req.hdr(host),lower",
    "path-beg": "deny if { path_beg /admin /private }",
    "hdr": "deny if { hdr(host) -i bad.example }",
    "src": "deny if { src 10.0.0.0/8 172.16.0.0/12 }",
    "method-and-end": "deny if METH_GET { path_end .php .cgi }",
    "path-reg": "deny if { path_reg ^/api/v[0-9]+/x }",
    "regsub": "set-var(txn.a) path,regsub(^/some,/other)",
    "unless": "deny unless { hdr(host) -m found }",
}
WORKLOADS = [
    *(rule(name, line) for name, line in TYPICAL.items()),
    *map(hosts, (10, 100, 1000)),
    *map(acls, (10, 100, 1000)),
]
