#!/bin/sh
# Guess: proxy-protocol (Python) skips the address block of a LOCAL header: the specification lets the sender fill
# it, and asks the receiver to ignore it; TLVs begin behind it.
# Seen: the bytes of the addresses are read as TLVs. The header of a health check that fills the block with
# 1.2.3.4 to 5.6.7.8 tells of a protocol chosen by ALPN (type 1), which nobody sent.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install --disable-pip-version-check proxy-protocol==0.11.3
cat >"$dir/probe.py" <<'PY'
import asyncio
from importlib.metadata import version
from proxyprotocol.reader import ProxyProtocolReader
from proxyprotocol.v2 import ProxyProtocolV2

ADDRESSES = bytes([1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2])


def header(command, block):
    return b"\r\n\r\n\0\r\nQUIT\n" + bytes([0x20 | command, 0x11]) + len(block).to_bytes(2, "big") + block


async def tlvs(data):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return dict((await ProxyProtocolReader(ProxyProtocolV2()).read(reader)).tlv)


print("proxy-protocol", version("proxy-protocol"))
proxied = asyncio.run(tlvs(header(1, ADDRESSES)))
local = asyncio.run(tlvs(header(0, ADDRESSES)))
print("TLVs of a PROXY header with addresses:", proxied)
print("TLVs of a LOCAL header with the same addresses:", local)
assert proxied == {} and local == {1: ADDRESSES[3:]}, "it behaves otherwise now"
print("as described: addresses of a LOCAL header are taken for a TLV of type 1 (ALPN)")
PY
"$dir/v/bin/python" "$dir/probe.py"
