"""TLS of clients and servers: connections whose handshake, closing alert and end are seen one by one."""

import contextlib
import pathlib
import ssl

from certificates import Authority
from wire import CLOSED, OPEN, RESET, Wire

# An end of the connection that no closing alert announced.
CUT = "closed without an alert"
ENDED = "ended within the handshake"
# Certificates by file: who signs, and for which names.
CERTIFICATES = {
    "a.pem": ("ca", "a.example", "www.a.example"),
    "b.pem": ("ca", "b.example"),
    "wild.pem": ("ca", "*.w.example"),
    "server.pem": ("ca", "s.example", "127.0.0.2", "127.0.0.3"),
    "foreign.pem": ("other", "s.example", "127.0.0.2", "127.0.0.3"),
    "client.pem": ("ca", "client.example"),
    "stranger.pem": ("other", "stranger.example"),
}
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def make_certificates(directory):
    """Writes certificates with their keys, and the authorities that signed them."""
    authorities = {name: Authority(f"{name}.example") for name in ("ca", "other")}
    for name, authority in authorities.items():
        pathlib.Path(directory, f"{name}.pem").write_text(authority.certificate)
    for file, (name, *names) in CERTIFICATES.items():
        pathlib.Path(directory, file).write_text(authorities[name].issue(*names))


class Contexts:
    """What a scenario speaks TLS with on one side: contexts, and the sessions that its clients may resume."""

    def __init__(self, directory):
        self.directory, self.made, self.sessions = pathlib.Path(directory), {}, {}

    def client(self, plan):
        """The context of clients with this plan. Sessions belong to a context, so that equal plans share one."""
        key = tuple(str(plan.get(word)) for word in ("alpn", "version", "certificate"))
        if key not in self.made:
            self.made[key] = self.context(ssl.PROTOCOL_TLS_CLIENT, plan)
        return key, self.made[key]

    def server(self, plan):
        context = self.context(ssl.PROTOCOL_TLS_SERVER, {"certificate": "server.pem", **plan})
        if verify := plan.get("verify"):
            context.verify_mode = ssl.CERT_REQUIRED if verify == "required" else ssl.CERT_OPTIONAL

        def named(tls, name, _):
            tls.name_asked = name

        context.sni_callback = named
        return context

    def context(self, side, plan):
        context = ssl.SSLContext(side)
        context.check_hostname = False
        if side == ssl.PROTOCOL_TLS_SERVER:
            context.verify_mode = ssl.CERT_NONE
        for authority in ("ca.pem", "other.pem"):
            context.load_verify_locations(str(self.directory / authority))
        if file := plan.get("certificate"):
            context.load_cert_chain(str(self.directory / file))
        if alpn := plan.get("alpn"):
            context.set_alpn_protocols(alpn)
        if version := VERSIONS.get(plan.get("version")):
            context.minimum_version = context.maximum_version = version
        return context


class TlsWire(Wire):
    """A connection over TLS. Who has accepted it, or waits for it, hears of it when the handshake is over."""

    def __init__(self, context, accepted=None, failed=None, name=None, session=None):
        super().__init__()
        self.when_ready, self.when_failed = accepted, failed
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = accepted is not None
        words = {} if is_server else {"server_hostname": name, "session": session}
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=is_server, **words)
        self.is_secure, self.fault, self.is_notified, self.agreed = False, "", False, {}

    def connection_made(self, transport):
        super().connection_made(transport)
        self.pump()

    def data_received(self, data):
        self.incoming.write(data)
        self.pump()

    def pump(self):
        """Does what can be done with what came."""
        try:
            if not self.is_secure:
                self.tls.do_handshake()
                self.is_secure, self.agreed = True, self.what_was_agreed()
                if self.when_ready:
                    self.when_ready(self)
            while piece := self.tls.read(1 << 16):
                self.received += piece
            self.notified()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.notified()
        except ssl.SSLError as fault:
            self.broken(fault.reason or str(fault))
        self.flush()
        self.wake()

    def notified(self):
        self.is_notified = True
        if self.end == OPEN:
            self.end = CLOSED

    def broken(self, reason):
        if not self.fault:
            self.fault = reason
            if not self.is_secure and self.when_failed:
                self.when_failed(self)
        if self.end == OPEN:
            self.end = CLOSED

    def flush(self):
        if self.outgoing.pending and not self.transport.is_closing():
            self.transport.write(self.outgoing.read())

    def eof_received(self):
        if self.end == OPEN:
            self.end = CUT
        if not self.is_secure:
            self.broken(ENDED)
        self.wake()
        return True

    def connection_lost(self, fault):
        if self.end == OPEN and not self.ended_here:
            self.end = RESET if fault is not None else CUT
        if not self.is_secure:
            self.broken(ENDED)
        self.wake()

    def send(self, data):
        if self.ended_here or self.is_half or self.transport.is_closing():
            return
        with contextlib.suppress(ssl.SSLError):
            self.tls.write(data)
        self.flush()

    def notify(self):
        """The closing alert, and nothing after it."""
        if self.is_secure and not self.is_half and not self.fault:
            with contextlib.suppress(ssl.SSLError, ValueError):
                self.tls.unwrap()
            self.flush()
        self.is_half = True

    def half_close(self):
        self.notify()
        super().half_close()

    def end_without_alert(self):
        """Ends this direction as one whose program was killed."""
        super().half_close()

    def close(self):
        self.notify()
        super().close()

    def cut(self):
        super().close()

    def shown(self):
        """What the handshake came to."""
        if not self.is_secure:
            return {"fault": self.fault}
        return self.agreed | ({"fault": self.fault} if self.fault else {})

    def what_was_agreed(self):
        """To be asked for when the handshake is over: behind a fatal alert OpenSSL says that it never was."""
        peer = self.tls.getpeercert() or {}
        names = [value for part in peer.get("subject", ()) for _, value in part]
        seen = {"version": self.tls.version(), "alpn": self.tls.selected_alpn_protocol(), "peer": names}
        seen["resumed"] = bool(self.tls.session_reused)
        if hasattr(self.tls, "name_asked"):
            seen["sni"] = self.tls.name_asked
        return seen
