"""The sixteen cells of OKD's router benchmark: no encryption, edge, passthrough and re-encrypt, with
and without keep-alive, each on loopback and over veth (OKD: host network and load balancer). As there,
100 routes, pages of 1 kB, and sessions that are resumed where TLS is involved."""

import dataclasses

from workloads.traffic import RESUMED, TLS13, Traffic, over_hosts

ROUTES = 100
# Over TLS all requests are for one route; in clear they go over all of them.
HOST = f"host{ROUTES // 2}.example"


@dataclasses.dataclass(kw_only=True)
class Router(Traffic):
    """Traffic of a router with a map of its routes."""

    def turn(self, scene, program):
        lines = "".join(f"host{n}.example b{n}\n" for n in range(ROUTES))
        (scene.directory / "routes.map").write_text(lines)
        return super().turn(scene, program)


def cell(kind, is_closing):
    mode = "close" if is_closing else "keepalive"
    more = {"is_closing": is_closing, "counted": "connection" if is_closing else "request"}
    if kind == "none":
        more |= {"script": over_hosts(ROUTES, is_closing), "host": HOST}
    else:
        words = [*TLS13, "--sni", HOST, *(RESUMED if is_closing else [])]
        more |= {"tool": "connect" if is_closing else "http", "words": words, "key": "p256", "host": HOST, "sni": HOST}
    return Router(
        name=f"okd-{kind}-{mode}", group="okd", about=f"OKD's router: {kind}, {mode}, {ROUTES} routes", peer=f"okd-{kind}",
        values={"COUNT": ROUTES, "HOSTS": "routes.map"}, **more,
    )


CELLS = [
    cell(kind, is_closing)
    for is_closing in (False, True)
    for kind in ("none", "edge", "passthrough", "reencrypt")
]
WORKLOADS = CELLS + [one.over_veth() for one in CELLS]
