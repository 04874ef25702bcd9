"""Steady traffic: processor time, system calls and context switches of a request, a connection or a
handshake, and the memory of the proxy before and under load."""

import dataclasses

from measuring import calls, kernel
from workloads.model import Must, Workload

MB = 1 << 20
CALLS_SECONDS = 1
# Before the measurement: pools filled, connections open, pages touched. wrk knows whole seconds only.
WARM_SECONDS = 0.5


@dataclasses.dataclass(kw_only=True)
class Traffic(Workload):
    """Load as fast as answers come."""

    path: str = "/1k"
    connections: int = 64
    # "wrk", or the mode of ballast-load.
    tool: str = "wrk"
    # Further arguments of the load generator.
    words: list = dataclasses.field(default_factory=list)
    # Lua, for wrk.
    script: str | None = None
    # A new connection for each request.
    is_closing: bool = False
    # The certificate, over TLS.
    key: str = ""
    # What is asked for (Host), and by which name over TLS.
    host: str | None = None
    sni: str | None = None
    # Further values of the configuration.
    values: dict = dataclasses.field(default_factory=dict)
    # What the processor time is divided by.
    counted: str = "request"

    def load(self, scene, port, seconds):
        if self.tool == "wrk":
            words = [*self.words, *(["-H", "Connection: close"] if self.is_closing else [])]
            more = {"script": self.script, "may_close": self.is_closing, "words": words}
            return scene.wrk(port, self.path, self.connections, seconds, **more)
        words = [*self.words, *(["--tls"] if self.key else [])]
        words += ["--path", self.path] if self.tool != "handshakes" else []
        words += ["--header", f"Host: {self.host}"] if self.host else []
        return scene.load(port, self.tool, self.connections, seconds, words)

    def turn(self, scene, program):
        with scene.proxy(program, self.peer, KEY=self.key, **self.values) as proxy:
            if "--h2" in self.words and not self.key:
                scene.wait_h2(proxy)
            else:
                scene.wait(proxy, self.path, is_tls=bool(self.key), host=self.host, name=self.sni)
            idle = kernel.memory_bytes(proxy.pid)
            self.load(scene, proxy.port, 1 if self.tool == "wrk" else WARM_SECONDS)
            used, counted = kernel.used_during(
                proxy.pid, lambda: self.load(scene, proxy.port, scene.seconds)
            )
            found = per_request(used, counted)
            found["idle_mb"] = idle / MB
            found["peak_mb"] = kernel.peak_bytes(proxy.pid) / MB
            if scene.counts_calls:
                found |= self.calls(scene, proxy)
        return found

    def calls(self, scene, proxy):
        """System calls of a request: all of them as a number, and each by its name."""
        made, counted = calls.counted_during(
            proxy.pid, lambda: self.load(scene, proxy.port, CALLS_SECONDS)
        )
        if not made:
            return {}
        shares = {name: count / counted["requests"] for name, count in made.items()}
        whole = shares.pop("all")
        named = {name: round(share, 3) for name, share in sorted(shares.items()) if share >= 0.005}
        return {"calls": whole, "calls_by_name": named}


def per_request(used, counted):
    """What was used, divided by what was counted."""
    requests = counted["requests"]
    found = {name: amount / requests for name, amount in used.items()}
    found["per_core"] = 1e6 / found["cpu_us"]
    return found | counted


def over_hosts(count, is_closing=False):
    """A program for wrk: requests over so many names, with a stride."""
    close = ', ["Connection"] = "close"' if is_closing else ""
    host = f'["Host"] = "host" .. (n * 7919 % {count}) .. ".example"'
    return (
        "local n = 0\n"
        f"request = function() n = n + 1 return wrk.format('GET', nil, {{{host}{close}}}) end\n"
    )


def at_most(share):
    return [Must("cpu_us", share)]


TLS12, TLS13 = (["--insecure", "--groups", "X25519", "--tls-version", version] for version in ("1.2", "1.3"))
RESUMED = ["--resume", "always"]
STREAMS = ["--h2", "--streams", "32"]
BODIES = ["--h2", "--streams", "4"]
# Of ballast-origin: as long as what nginx gives.
H2_PATH = "/1k?size=1000"
UPLOAD = [*BODIES, "--method", "POST", "--body-bytes", str(1 << 20)]


def traffic(name, about, share=None, *, group="traffic", peer=None, is_default=True, **more):
    musts = at_most(share) if share else []
    return Traffic(
        name=name, group=group, about=about, peer=peer or name, musts=musts, is_default=is_default, **more
    )


def over_tls(name, about, share, words, tool="http", key="p256", **more):
    more = {"peer": "tls", "group": "tls"} | more
    return traffic(name, about, share, words=words, tool=tool, key=key, **more)


# A read and a write on each side, and a share of a wait: no epoll_ctl, no read in vain, no timer.
CALLS_MAX = 4.3
KEEPALIVE = traffic("keepalive", "HTTP/1.1, 1 kB, connections kept", 0.75)
KEEPALIVE.musts.append(Must("calls", limit=CALLS_MAX))
CLEAR = [
    KEEPALIVE,
    traffic("logged", "the same with httplog to UDP, 10 ACLs, 5 header rules", 0.65),
    traffic("log", "the same with httplog to UDP alone", is_default=False),
    traffic("close", "HTTP/1.1, 1 kB, a connection for each request", 0.80, is_closing=True, counted="connection"),
    traffic("tcp", "TCP, the same traffic not looked into", 0.85),
    traffic("large", "HTTP, bodies of 1 MB, splicing allowed", 0.90, path="/1m", connections=16),
    traffic("copied", "HTTP, bodies of 1 MB, no splicing", 0.85, path="/1m", connections=16),
    traffic("large-default", "HTTP, bodies of 1 MB, no word about splicing", 0.85, path="/1m", connections=16),
    traffic("tcp-large", "TCP, bodies of 1 MB, splicing allowed", 0.90, path="/1m", connections=16),
]
TLS = [
    over_tls("tls-keepalive", "TLS 1.3, 1 kB, connections kept", 0.62, TLS13),
    over_tls("tls-large", "TLS 1.3, bodies of 1 MB", 0.90, TLS13, path="/1m", connections=16, is_default=False),
    over_tls(
        "tls-resumed", "TLS 1.3, a resumed handshake and a request", 0.45, [*TLS13, *RESUMED], "connect",
        counted="connection",
    ),
]
HANDSHAKES = [
    over_tls(
        name, about, share, words, "handshakes", key, group="handshakes",
        counted="handshake", rounds_max=2, is_default=share is not None,
    )
    for name, about, share, words, key in (
        ("tls-full-p256", "a full handshake, TLS 1.3, P-256", 0.60, [*TLS13, "--resume", "never"], "p256"),
        ("tls-full-rsa", "a full handshake, TLS 1.3, RSA-2048", 0.75, [*TLS13, "--resume", "never"], "rsa"),
        ("tls-full-rsa-1.2", "a full handshake, TLS 1.2, ECDHE-RSA-2048", 0.75, [*TLS12, "--resume", "never"], "rsa"),
        ("tls-resumed-only", "a resumed handshake, TLS 1.3, no request", 0.45, [*TLS13, *RESUMED], "p256"),
        ("tls-resumed-1.2", "a resumed handshake, TLS 1.2, no request", None, [*TLS12, *RESUMED], "rsa"),
    )
]
HTTP2_BODIES = {"tool": "http", "connections": 4, "group": "h2", "is_default": False}
HTTP2 = [
    traffic("h2", "HTTP/2 in clear, 8 connections of 32 streams", 0.70, words=STREAMS, tool="http", connections=8, group="h2"),
    over_tls("h2-tls", "the same over TLS 1.3", 0.70, [*TLS13, *STREAMS], peer="h2-tls", group="h2", connections=8, is_default=False),
    traffic("h2-servers", "the same, HTTP/2 to the server", 0.80, path=H2_PATH, words=STREAMS, tool="http", connections=8, group="h2", is_default=False),
    traffic("h1-h2-servers", "HTTP/1.1, HTTP/2 to the server", 0.80, path=H2_PATH, peer="h2-servers", group="h2", is_default=False),
    traffic("h2-down", "HTTP/2, bodies of 1 MB to clients", 0.90, peer="h2", words=BODIES, path="/1m", **HTTP2_BODIES),
    traffic("h2-up", "HTTP/2, bodies of 1 MB to servers", 0.90, peer="h2-uploads", words=UPLOAD, path="/upload", **HTTP2_BODIES),
]
VETH = [one.over_veth(group="veth", is_default=one.name != "keepalive") for one in CLEAR if one.name in ("keepalive", "close", "tcp")]
WORKLOADS = [*CLEAR, *VETH, *TLS, *HANDSHAKES, *HTTP2]
