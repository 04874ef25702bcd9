#!/bin/sh
# Guess: once do_handshake() has returned, what was agreed on is known for good: version() and getpeercert() of
# Python's ssl answer the same until the connection is closed, whatever the peer sends.
# Seen: a server of TLS 1.3 that wants a certificate refuses a client after the client's handshake is over. From
# that alert on version() is None, and getpeercert() raises "handshake not done yet"; cipher() still answers. Who
# logs a connection when it ends must have asked before.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check trustme==1.2.1
cat >probe.py <<'PY'
import platform
import ssl

import trustme

authority = trustme.CA()
wants = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
authority.issue_cert("server.example").configure_cert(wants)
authority.configure_trust(wants)
wants.verify_mode = ssl.CERT_REQUIRED
has_none = ssl.create_default_context()
authority.configure_trust(has_none)

to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
client = has_none.wrap_bio(to_client, to_server, server_hostname="server.example")
server = wants.wrap_bio(to_server, to_client, server_side=True)


def outcome(call):
    try:
        return call() or "nothing"
    except (ssl.SSLError, ValueError) as fault:
        return getattr(fault, "reason", None) or str(fault)


def facts():
    return [outcome(client.version), outcome(lambda: bool(client.getpeercert())), outcome(lambda: client.cipher()[1])]


steps = [outcome(side.do_handshake) for side in (client, server, client)]
before = facts()
refused, heard = outcome(server.do_handshake), outcome(lambda: client.read(1))
after = facts()
print(f"Python {platform.python_version()}, {ssl.OPENSSL_VERSION}")
print(f"the client's handshake: {steps[2]}; version, certificate, cipher: {before}")
print(f"the server then: {refused}; the client hears: {heard}")
print(f"version, certificate, cipher: {after}")
if before != ["TLSv1.3", True, "TLSv1.3"] or after != ["nothing", "handshake not done yet", "TLSv1.3"]:
    raise SystemExit("it behaves otherwise now")
print("as described: behind a fatal alert the facts of a finished handshake are gone")
PY
venv/bin/python probe.py
