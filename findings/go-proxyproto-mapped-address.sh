#!/bin/sh
# Guess: a header that go-proxyproto read can be written again: Format gives the line that Read took.
# Seen: a client of IPv4 that came to a socket of IPv6 has the address ::ffff:192.0.2.1. It is kept in Go's short form,
# and written as `PROXY TCP6 192.0.2.1 ...`: an address of IPv4 in a line of IPv6, which the specification does not know.
# The library reads its own line again without an error.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
export GOFLAGS=-mod=mod GOMODCACHE="$dir/mod"
cat >go.mod <<'MOD'
module probe

go 1.24

require github.com/pires/go-proxyproto v0.12.0
MOD
cat >main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	proxyproto "github.com/pires/go-proxyproto"
)

func main() {
	line := "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1000 80\r\n"
	header, err := proxyproto.Read(bufio.NewReader(strings.NewReader(line)))
	if err != nil {
		fmt.Println("it behaves otherwise now:", err)
		os.Exit(1)
	}
	written, err := header.Format()
	fmt.Println("go-proxyproto v0.12.0")
	fmt.Printf("read:    %q\nwritten: %q %v\n", line, written, err)
	_, again := proxyproto.Read(bufio.NewReader(strings.NewReader(string(written))))
	fmt.Println("read again by the library:", again)
	if string(written) != "PROXY TCP6 192.0.2.1 2001:db8::2 1000 80\r\n" {
		fmt.Println("it behaves otherwise now")
		os.Exit(1)
	}
	fmt.Println("as described: the mapped address is written in the form of IPv4")
}
GO
go run .
