#!/bin/sh
# Guess: proxy-protocol-js reads the line `PROXY UNKNOWN`, which the specification asks every receiver to take, as a
# header without addresses.
# Seen: it wants addresses there too: the short line is an error, and the same line with addresses, which a receiver is to
# ignore, gives them to the caller.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund proxy-protocol-js@4.0.6
cat >probe.js <<'JS'
const { V1ProxyProtocol } = require('proxy-protocol-js');
const assert = require('assert');
console.log('proxy-protocol-js', require('proxy-protocol-js/package.json').version);
const outcome = (line) => {
  try { return JSON.stringify(V1ProxyProtocol.parse(line + 'GET').source); } catch (error) { return error.message; }
};
const short = outcome('PROXY UNKNOWN\r\n');
const long = outcome('PROXY UNKNOWN 2001:db8::1 2001:db8::2 1 2\r\n');
console.log('without addresses:', short);
console.log('with addresses:', long);
assert.match(short, /isn't suitable for V1/, 'it behaves otherwise now');
assert.strictEqual(long, '{"ipAddress":"2001:db8::1","port":1}', 'it behaves otherwise now');
console.log('as described: UNKNOWN is read where it has what is to be ignored, and refused where it has not');
JS
node probe.js
