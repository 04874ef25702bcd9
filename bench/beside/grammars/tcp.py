"""TCP sessions: both sides speak, end, half end and fall silent, under timeouts of each kind."""

from grammars.common import client, defaults, section

LOG = 'log-format "%ts f=%f b=%b s=%s U=%U B=%B rc=%rc"'
# The two sides' timeouts are far enough apart for either to come first.
CLIENT_TIMEOUTS = ("200ms", "600ms", "1200ms")
SERVER_TIMEOUTS = ("200ms", "400ms", "900ms")
FIN_TIMEOUTS = ("timeout client-fin 100ms", "timeout server-fin 100ms", "timeout client-fin 800ms", "timeout server-fin 700ms")
FRONT_RULES = (
    *("tcp-request inspect-delay 100ms", "tcp-request content accept if { req.len gt 3 }"),
    *("tcp-request content reject if { req.payload(0,2) -m str bu }", "option logasap", "option dontlognull"),
)
BACK_RULES = (
    *("tcp-response inspect-delay 100ms", "tcp-response content reject if { res.payload(0,2) -m str bu }"),
    *("tcp-response content close if { res.payload(0,2) -m str he }", "option redispatch"),
)
WORDS = ("hello", "hi", "bye", "buffer")
ENDS = ("close", "half", "stall", "reset")


def some_steps(random):
    steps = []
    for _ in range(random.randint(0, 3)):
        word = random.choice(("send", "send", "bytes", "pause"))
        steps.append({"send": ["send", random.choice(WORDS)], "bytes": ["bytes", random.randint(1, 6)]}.get(word, [word]))
    end = random.choice(ENDS)
    # Who has ended its side may have the last word of the other one, or wait for it.
    behind = [["bytes", 9]] if end == "half" and random.random() < 0.7 else []
    return [*steps, [end], *behind]


def generate(random):
    base = [f"timeout client {random.choice(CLIENT_TIMEOUTS)}", f"timeout server {random.choice(SERVER_TIMEOUTS)}"]
    if random.random() < 0.4:
        base.append(random.choice(FIN_TIMEOUTS))
    if random.random() < 0.1:
        base.append("timeout tunnel 500ms")
    front = random.sample(FRONT_RULES, random.choice((0, 0, 1, 2)))
    back = random.sample(BACK_RULES, random.choice((0, 0, 1)))
    return {
        "defaults": defaults(*base, log=LOG, mode="tcp"),
        "sections": [
            section("frontend web", "bind @bind:web@", "default_backend @app@", *front),
            section("backend app", *back, "server s1 @server:s1@"),
        ],
        "servers": {"s1": {"speaks": "tcp", "answers": [some_steps(random) for _ in range(random.choice((1, 2)))]}},
        "clients": [client([["send", "first"]] * random.choice((0, 1, 1)) + some_steps(random), "tcp") for _ in range(random.choice((1, 2)))],
    }
