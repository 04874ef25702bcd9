"""The programs that are compared."""

import functools
import os
import pathlib
import subprocess
import typing

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
PEERS = BENCH / "peers"


@functools.cache
def oracle():
    """The HAProxy to compare with: 3.2 of Debian's archive, else the system's; reports name it."""
    if given := os.environ.get("HAPROXY"):
        return given
    found = subprocess.run([ROOT / "scripts/oracle"], stdout=subprocess.PIPE, text=True)
    return found.stdout.strip() if found.returncode == 0 else "/usr/sbin/haproxy"


class Program(typing.NamedTuple):
    """A program of the comparison."""

    name: str
    path: str

    @property
    def is_nginx(self):
        return pathlib.Path(self.path).name.startswith("nginx")

    @property
    def file(self):
        """What its configuration is called in a directory of `bench/peers`."""
        return "nginx.conf" if self.is_nginx else "haproxy.cfg"

    def command(self, configuration):
        return [self.path, *(["-c"] if self.is_nginx else ["-db", "-f"]), str(configuration)]

    def version(self):
        said = subprocess.run([self.path, "-v"], capture_output=True, text=True)
        return ((said.stdout + said.stderr).splitlines() or ["says nothing"])[0]
