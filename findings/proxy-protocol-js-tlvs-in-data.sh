#!/bin/sh
# Guess: `data` of a header parsed by proxy-protocol-js is what follows the header, for version 1 and version 2 alike.
# Seen: in version 2 it begins behind the addresses, not behind the length that the header states. TLVs of the
# header (HAProxy's `send-proxy-v2-ssl`, AWS, Azure) stand before the first byte of the client.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund proxy-protocol-js@4.0.6
cat >probe.js <<'JS'
const { V2ProxyProtocol } = require('proxy-protocol-js');
const assert = require('assert');
console.log('proxy-protocol-js', require('proxy-protocol-js/package.json').version);
const addresses = [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2];
const header = (block) => Buffer.from([
  ...Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'), 0x21, 0x11, 0, block.length, ...block, ...Buffer.from('GET')]);
const data = (block) => Buffer.from(V2ProxyProtocol.parse(new Uint8Array(header(block))).data).toString('hex');
const bare = data(addresses);
const withTlv = data([...addresses, 0x20, 0, 5, 1, 0, 0, 0, 0]);
console.log('data behind a header without TLVs:', bare);
console.log('data behind a header with one of TLS:', withTlv);
assert.strictEqual(bare, '474554', 'it behaves otherwise now');
assert.strictEqual(withTlv, '2000050100000000474554', 'it behaves otherwise now');
console.log('as described: the TLV is part of the data');
JS
node probe.js
