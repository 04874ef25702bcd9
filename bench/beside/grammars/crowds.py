"""Crowds: many clients at once and several servers, of which one may be slow, refuse, or fail. What is compared is counts."""

from grammars.common import asks, client, defaults, ok, request, section, server

LOG = 'log-format "%ST %ts s=%s rc=%rc"'
ALGORITHMS = (
    *("roundrobin", "roundrobin", "leastconn", "leastconn", "static-rr", "random", "random(3)", "first"),
    *("source", "uri", "hdr(x-k)", "url_param k", "hash path"),
)
TROUBLES = ("refuses", "refuses", "slow", "slow", "closes", "503", "none")
OPTIONS = (
    *("option redispatch", "option redispatch", "option redispatch 1", "option redispatch 2", "no option redispatch", "option redispatch -1"),
    *("http-reuse always", "http-reuse never", "option http-server-close", "retry-on 503", "retry-on all-retryable-errors"),
    *("option prefer-last-server", "hash-type consistent", "hash-balance-factor 150"),
)
# Only backends know these.
BACK = ("option prefer-last-server", "hash-type", "hash-balance-factor", "retry-on")
SERVER_WORDS = ("", "", "", " weight 2", " weight 3", " maxconn 2", " maxconn 4", " backup")


def a_troubled_server(trouble):
    if trouble == "refuses":
        return server(refuses=True)
    if trouble == "slow":
        return server([["body"], ["pause"], ["answer", 200, [], "slow"]])
    if trouble == "closes":
        return server([["body"], ["close"]])
    return server(ok("no", status=503)) if trouble == "503" else server()


def generate(random):
    names = ["s1", "s2", "s3"][: random.choice((2, 3, 3))]
    servers = {name: server() for name in names}
    servers[random.choice(names)] = a_troubled_server(random.choice(TROUBLES))
    options = random.sample(OPTIONS, random.choice((0, 1, 2)))
    base = [line for line in options if not line.startswith(BACK)]
    back = [line for line in options if line.startswith(BACK)]
    speaks = random.choice(("h1", "h1", "h2"))
    crowd, each = random.choice(((8, 30), (12, 20), (24, 10)))
    clients = []
    for number in range(crowd):
        asked = [request("GET", f"/{number}/{at}?k={at}", ["X-K", str(number * at)]) for at in range(each)]
        clients.append(client(asks(*asked), speaks))
    bind = "bind @bind:web@" + (" proto h2" if speaks == "h2" else "")
    lines = [f"server {name} @server:{name}@{random.choice(SERVER_WORDS)}" for name in names]
    return {
        "defaults": defaults(*base, f"retries {random.randint(0, 2)}", log=LOG),
        "sections": [
            section("frontend web", bind, "default_backend @app@"),
            section("backend app", f"balance {random.choice(ALGORITHMS)}", *back, *lines),
        ],
        "servers": servers,
        "clients": clients,
        "together": True,
        "counted": True,
    }
