#!/bin/sh
# Guess: blanks around the arguments of HAProxy's conditions (`.if`, `-cc`) are there for the reader, as in other languages
# and around the operators of the same conditions: `streq(a, a)` holds.
# Seen: blanks belong to the argument: `streq(a, a)` compares `a` with ` a`, and does not hold; nothing says so. Before the
# parenthesis and around `&&` they are passed over. (3.2 does the same.)
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# On Debian 12 or what is built on it.
cd "$dir"
apt-get -q -o APT::Sandbox::User=root download haproxy=2.6.12-1+deb12u3 liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0 >/dev/null
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(find "$dir/root" -type d -name '*-linux-gnu' | tr '\n' ':')
export LD_LIBRARY_PATH
haproxy=$dir/root/usr/sbin/haproxy
"$haproxy" -v | head -n 1
# The condition, and the exit code: 0 it holds, 1 it does not, more: it is none.
wrong=0
while IFS='|' read -r expected condition; do
  code=0
  said=$("$haproxy" -cc "$condition" 2>&1) || code=$?
  echo "$code  $condition  ${said:-(says nothing)}"
  [ "$code" = "$expected" ] || wrong=1
done <<'END'
0|streq(a,a)
1|streq(a, a)
1|streq(a ,a)
0|streq( a, a)
0|streq(a,a) && streq(b,b)
END
[ "$wrong" = 0 ] || { echo "this is not what was seen before"; exit 1; }
