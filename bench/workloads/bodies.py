"""Bodies from 0 B to 10 MB, to clients and to servers: how the cost of a request grows with them."""

from measuring.scene import BODY_BYTES
from workloads.model import Curve
from workloads.traffic import traffic

DOWN = Curve("bodies-down", "A response with a body", "bytes of body", "cpu_us", "CPU a request, us")
UP = Curve("bodies-up", "A request with a body", "bytes of body", "cpu_us", "CPU a request, us")
PATHS = ["/0", "/100", "/1000", "/10k", "/100k", "/1m", "/10m"]


def connections(length):
    return 64 if length < 100_000 else 16 if length < 10_000_000 else 4


def point(size, curve, **more):
    length = BODY_BYTES[size]
    return traffic(
        f"{curve.name}-{size[1:]}", f"a body of {length:,} B", group=curve.name, curve=curve, x=length,
        connections=connections(length), **more,
    )


def upload(size):
    words = ["--method", "POST", "--body-bytes", BODY_BYTES[size]]
    return point(size, UP, peer="uploads", path="/upload", tool="http", words=words)


WORKLOADS = [point(size, DOWN, peer="copied", path=size) for size in PATHS] + [upload(size) for size in PATHS]
