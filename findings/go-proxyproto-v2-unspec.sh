#!/bin/sh
# Guess: go-proxyproto takes a version 2 header whose family is UNSPEC (0x00) as it takes LOCAL: the specification
# tells receivers to accept it and to use the addresses of the connection.
# Seen: with the command LOCAL it is taken, with PROXY it is an error, "unsupported address family and protocol",
# and the connection is lost. The same news in version 1 (`PROXY UNKNOWN`) is taken.
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

func outcome(header string) string {
	if _, err := proxyproto.Read(bufio.NewReader(strings.NewReader(header + "GET"))); err != nil {
		return err.Error()
	}
	return "taken"
}

func main() {
	signature := "\r\n\r\n\x00\r\nQUIT\n"
	seen := []string{
		outcome("PROXY UNKNOWN\r\n"), outcome(signature + "\x20\x00\x00\x00"), outcome(signature + "\x21\x00\x00\x00"),
	}
	fmt.Println("go-proxyproto v0.12.0")
	fmt.Println("version 1, UNKNOWN:      ", seen[0])
	fmt.Println("version 2, LOCAL, UNSPEC:", seen[1])
	fmt.Println("version 2, PROXY, UNSPEC:", seen[2])
	if seen[0] != "taken" || seen[1] != "taken" || seen[2] != "proxyproto: unsupported address family and protocol" {
		fmt.Println("it behaves otherwise now")
		os.Exit(1)
	}
	fmt.Println("as described: a PROXY header without addresses is refused in version 2 alone")
}
GO
go run .
