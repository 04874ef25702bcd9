"""Where a measurement takes place: on the loopback interface, or in three network namespaces with
pairs of veth interfaces between them, so that neither side of the proxy is loopback."""

import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
ROLES = ("client", "proxy", "server")


class Unavailable(Exception):
    """This place cannot be had here; the text says why."""


class Loopback:
    """Client, proxy and server share the loopback interface."""

    name = "loopback"
    # Where clients find the proxy, and where the proxy finds the server.
    proxy = server = "127.0.0.1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def inside(self, _role):
        """Sockets made and processes started inside belong to this role."""
        return contextlib.nullcontext()


class Veth:
    """A namespace each for client, proxy and server. Needs root."""

    name = "veth"
    proxy, server = "10.213.1.2", "10.213.2.2"

    def __init__(self):
        self.names = {role: f"bench-{os.getpid()}-{role}" for role in ROLES}
        self.libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("network namespaces need root")
        try:
            for role in ROLES:
                ip("netns", "add", self.names[role])
                self.ip(role, "link", "set", "lo", "up")
            self.pair("client", "10.213.1.1", "proxy", self.proxy, "front")
            self.pair("proxy", "10.213.2.1", "server", self.server, "back")
        except (OSError, subprocess.CalledProcessError) as fault:
            self.__exit__()
            said = getattr(fault, "stderr", None) or fault
            raise Unavailable(f"no network namespaces with veth here: {said}".strip()) from fault
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                ip("netns", "del", name)

    def ip(self, role, *words):
        ip("-n", self.names[role], *words)

    def pair(self, left, left_address, right, right_address, name):
        """Joins two namespaces."""
        peer = ("type", "veth", "peer", "name", name, "netns", self.names[right])
        self.ip(left, "link", "add", name, *peer)
        for role, address in ((left, left_address), (right, right_address)):
            self.ip(role, "address", "add", f"{address}/24", "dev", name)
            self.ip(role, "link", "set", name, "up")

    @contextlib.contextmanager
    def inside(self, role):
        """Sockets made and processes started inside, by this thread, belong to this role."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        wanted = os.open(f"/run/netns/{self.names[role]}", os.O_RDONLY)
        try:
            self.enter(wanted)
            yield
        finally:
            self.enter(before)
            os.close(wanted)
            os.close(before)

    def enter(self, descriptor):
        if self.libc.setns(descriptor, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
