"""Where a line stands: small files that are valid but for the line that is put into them."""

import re
import typing

# What is put in place of a section's word where the line is.
HERE = "\x02"

GLOBAL = f"""\
global
{HERE}global
"""
DEFAULTS = f"""\
defaults d
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
{HERE}defaults
userlist u1
    group g1 users a
    user a insecure-password b
http-errors e1
    errorfile 404 page.http
"""
PROXIES = f"""\
backend t1 from d
    stick-table type ip size 1k expire 1m store gpc0,gpc1,gpt0,conn_cnt,http_req_rate(10s)
frontend web from d
    bind 127.0.0.1:8080
    acl a1 path /a
{HERE}frontend
    default_backend app
backend app from d
    acl a1 path /a
{HERE}backend
    server s1 127.0.0.1:9001
"""
LISTEN = f"""\
listen both from d
    bind 127.0.0.1:8081
    acl a1 path /a
{HERE}listen
    server s2 127.0.0.1:9002
"""
# Sections that a file has where its line, or a word of it, asks for them.
OTHERS = {
    "resolvers": ("resolvers r1", "    nameserver n0 127.0.0.1:53", r"\br1\b"),
    "peers": ("peers p1", "    peer x 127.0.0.1:9003", r"\bp1\b"),
    "mailers": ("mailers m1", "    mailer m0 127.0.0.1:25", r"\bm1\b"),
    "ring": ("ring n1", "    size 32k", r"ring@n1"),
    "cache": ("cache n1", "    total-max-size 4", r"cache.* n1\b"),
    "userlist": ("userlist u2", "    user z insecure-password b", None),
    "http-errors": ("http-errors e2", "    errorfile 404 page.http", None),
    "log-forward": ("log-forward f1", "    dgram-bind 127.0.0.1:9004\n    log 127.0.0.1:9005 local0", None),
    "log-profile": ("log-profile lp", "    log-tag x", None),
    "fcgi-app": ("fcgi-app n1", "    docroot /tmp", r"use-fcgi-app"),
    "crt-store": ("crt-store c1", "    load crt cert.pem alias z", None),
    "traces": ("traces", "", None),
    "acme": ("acme ac1", "    directory https://127.0.0.1/d", None),
    "program": ("program pr1", "    command true", None),
}
RULES = {
    "http-request": ("frontend", "backend", "listen", "defaults"),
    "http-response": ("backend", "frontend"),
    "http-after-response": ("frontend", "backend"),
    "tcp-request connection": ("frontend", "listen"),
    "tcp-request session": ("frontend",),
    "tcp-request content": ("frontend", "backend"),
    "tcp-response content": ("backend",),
    "quic-initial": ("frontend",),
}
PROXY = ("frontend", "backend", "listen", "defaults")
# Where a sample stands: `SAMPLE` is it.
SAMPLES = (
    ("frontend", "http-request set-var(txn.a) {}"),
    ("frontend", "acl a9 {} 1"),
    ("backend", "http-response set-var(txn.a) {}"),
    ("frontend", "tcp-request connection set-var(sess.a) {}"),
    ("frontend", "tcp-request content set-var(sess.a) {}"),
    ("frontend", "http-request set-header x %[{}]"),
    ("frontend", "http-request deny if {{ {} 1 }}"),
    ("frontend", "log-format %[{}]"),
    ("backend", "stick on {} table t1"),
    ("backend", "use-server s1 if {{ {} -m found }}"),
    ("frontend", "use_backend app if {{ {} -m str x }}"),
    ("backend", "tcp-response content set-var(txn.a) {}"),
)
# What a converter may be given.
INPUTS = ("str(a)", "int(1)", "src", "always_true", "path", "hdr(host)")


class Line(typing.NamedTuple):
    """A line, and the section it stands in."""

    section: str
    text: str


def places(entry):
    """The places where a word of the manual may stand, each as a section and a function of its words."""
    if entry.kind == "global":
        return [("global", "{}")]
    if entry.kind == "proxy":
        return [(section, "{}") for section in PROXY]
    if entry.kind == "action":
        return [(section, rules + " {}") for rules, sections in RULES.items() for section in sections]
    if entry.kind == "bind":
        return [("frontend", "bind 127.0.0.1:8082 {}"), ("frontend", "bind 127.0.0.1:8082 ssl crt cert.pem {}")]
    if entry.kind == "server":
        return [("backend", "server s9 127.0.0.1:9009 {}"), ("backend", "default-server {}"), ("backend", "server s9 127.0.0.1:9009 ssl verify none {}")]
    if entry.kind == "sample":
        return list(SAMPLES)
    if entry.kind == "converter":
        return [(section, text.replace("{}", f"{sample},{{}}")) for sample in INPUTS for section, text in SAMPLES]
    if entry.kind == "load":
        return [("crt-store", "load crt cert.pem {}")]
    if entry.kind == "head":
        return [("", "{}")]
    return [(entry.kind, "{}")]


def is_head(entry):
    """Whether a word begins a section."""
    return entry.kind == "head" or entry.kind in OTHERS and entry.word == entry.kind


def wrong_places(entry, rng):
    """Somewhere a word does not belong."""
    section = rng.choice(("global", "defaults", "frontend", "backend", "listen", *OTHERS))
    if entry.kind in ("bind", "server"):
        return rng.choice((("backend", "server s9 127.0.0.1:9009 {}"), ("frontend", "bind 127.0.0.1:8082 {}"), (section, "{}")))
    if entry.kind == "action":
        rules = rng.choice(list(RULES))
        return rng.choice(PROXY), rules + " {}"
    if entry.kind in ("sample", "converter"):
        return rng.choice((("global", "set-var proc.a {}"), ("defaults", "http-request set-var(txn.a) {}"), ("backend", "http-request use-service {}"),
                           ("backend", "balance hash {}"), ("backend", "tcp-check set-var(check.a) {}"), ("frontend", "unique-id-format %[{}]")))
    return section, "{}"


def file_of(line):
    """A file with this line in its section, and with the sections that its words ask for."""
    parts = [GLOBAL]
    text = DEFAULTS + PROXIES + (LISTEN if line.section == "listen" else "")
    for name, (head, body, asked) in OTHERS.items():
        if line.section == name:
            parts.append(f"{head}\n{body}\n{HERE}{name}\n".replace("\n\n", "\n"))
        elif asked and re.search(asked, line.text):
            parts.append(f"{head}\n{body}\n")
    parts.append(text)
    if not line.section:
        parts.append(f"{HERE}\n")
    whole = "".join(parts)
    whole = re.sub(rf"{HERE}{line.section}\n", lambda _: "".join(f"    {each}\n" if line.section else f"{each}\n" for each in line.text.split("\n")), whole)
    return re.sub(rf"{HERE}\w*(-\w+)*\n", "", whole)
