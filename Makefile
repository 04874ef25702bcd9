# The entry points. `make run` shows it, `make test` checks all of it;
# neither needs anything but Rust and, for the checks, Debian's packages.

.DEFAULT_GOAL := help
.PHONY: help run build test exam proof release fmt fuzz bench chaos audit clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

run: ## build Ballast, start it before two demo servers, print what to open
	@scripts/run

build: ## build target/debug/ballast: what `make run` and the end-to-end checks run
	cargo build --locked -p ballast -p ballast-load -p ballast-origin

test: ## the checks, beside HAProxy 3.2 (installs the Debian packages it needs, as root)
	@scripts/test

exam: build ## the long suites, beside `make test`: the scripts on HAProxy 2.6 and over HTTP/2, testssl.sh, Chromium, h2spec, gRPC
	@scripts/exam

proof: ## build target/proof/ballast: what `make chaos` runs
	cargo build --locked --profile proof -p ballast -p ballast-load -p ballast-origin

release: ## build target/release/ballast: what is shipped, and what `make bench` measures
	cargo build --locked --release -p ballast -p ballast-load -p ballast-origin

fmt: ## put every file into the one format
	cargo fmt --all
	rustfmt --edition 2024 fuzz/fuzz_targets/*.rs fuzz/src/*.rs

fuzz: ## every fuzz target for 60 seconds
	fuzz/run 60

bench: release ## side by side with HAProxy 3.2 and nginx: CPU, system calls, memory, latency; writes docs/performance.md
	@scripts/packages haproxy=haproxy nginx=nginx-light wrk=wrk taskset=util-linux ip=iproute2 strace=strace \
	  openssl=openssl python3=python3 /usr/lib/nginx/modules/ngx_stream_module.so=libnginx-mod-stream
	@scripts/packages perf=linux-perf || echo "without perf: strace counts the system calls" >&2
	bench/run

chaos: proof ## what a change costs those who are served: the proof, in eighteen minutes
	@scripts/packages haproxy=haproxy python3=python3 ss=iproute2
	bench/chaos

audit: ## advisories and licences by cargo-deny (cargo install cargo-deny)
	cargo deny check

clean: ## remove what was built
	cargo clean
	rm -rf fuzz/target bench/results
