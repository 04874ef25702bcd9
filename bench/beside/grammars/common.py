"""What several grammars begin with."""

HOST = "www.a.example"
LOG_FORMAT = (
    'log-format "%HM %HPO %HV %ST %tsc f=%f b=%b s=%s U=%U B=%B rc=%rc bq=%bq sq=%sq cs=%CC,%CS hr=%hr hs=%hs %ac,%fc,%bc,%sc"'
)
SHORT_LOG = 'log-format "%HM %HPO %HV %ST %tsc b=%b s=%s rc=%rc hr=%hr hs=%hs"'
TIMEOUTS = ("timeout connect 300ms", "timeout client 600ms", "timeout server 400ms")


def defaults(*more, log=SHORT_LOG, mode="http"):
    return [f"mode {mode}", "log @log@ local0", log, *TIMEOUTS, *more]


def section(head, *lines):
    return {"head": head, "lines": list(lines)}


def request(method="GET", target="/", *fields, body=None, version="1.1", **more):
    """A request; a body of HTTP/1 has a length unless a field says that it is chunked."""
    given = [["Host", HOST], *[list(field) for field in fields]]
    if body is not None and not any(name.lower() == "transfer-encoding" for name, _ in given):
        given.append(["Content-Length", str(len(body))])
    made = {"method": method, "target": target, "version": version, "fields": given, **more}
    if body is not None:
        made["body"] = body
    return made


def asks(*requests):
    """Requests of one connection, each after the response to the last."""
    steps = []
    for each in requests:
        steps += [["ask", each], ["read"]]
    return steps


def client(steps, speaks="h1", to="web"):
    return {"to": to, "speaks": speaks, "steps": steps}


def server(*answers, **more):
    return {"speaks": "h1", "answers": list(answers) or [ok()], **more}


def ok(body="ok", *fields, status=200):
    """The steps of a plain answer."""
    return [["body"], ["answer", status, [list(field) for field in fields], body]]


def bind(speaks):
    return "bind @bind:web@" + (" proto h2" if speaks == "h2" else "")


def site(front=(), back=(), base=(), clients=(), servers=None, speaks="h1", server_words="", **more):
    """A frontend `web` before a backend `app` of a server `s1`, with lines for each."""
    servers = servers or {"s1": server()}
    lines = [f"server {name} @server:{name}@{server_words}" for name in servers]
    return {
        "defaults": defaults(*base),
        "sections": [
            section("frontend web", bind(speaks), "default_backend @app@", *front),
            section("backend app", *back, *lines),
        ],
        "servers": servers,
        "clients": list(clients),
        **more,
    }
