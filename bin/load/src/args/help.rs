//! The text of `--help`.

/// The text of `--help`.
pub(crate) const HELP: &str = "\
usage: ballast-load [http] [options] TARGET...       requests and answers
       ballast-load connect [options] TARGET...      the same, with a new connection per request
       ballast-load handshakes [options] TARGET...   TLS handshakes, and no request
       ballast-load websockets [options] TARGET...   connections that stay, and echo
       ballast-load report FILE... --html FILE       a page from reports that --json printed

TARGET is HOST:PORT, http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix@/PATH/OF/SOCKET; 'URL 3'
is asked for three times as often as one without a weight. URLs of one address share its
connections. It never stops at a failure: every one is counted by its class.

What is asked
  --urls FILE             targets from a file, one a line, with weights or without; # comments
  --path P                ask for this path; several are asked for in turn (/; websockets: /ws)
  --method M              (GET; POST with --body)
  --header 'NAME: VALUE'  add this field; may be given again
  --body TEXT             send this body; --body @FILE sends what is in the file
  --body-bytes N          send a body of N bytes
  --content-type TYPE     what the body is
  --h2                    requests are HTTP/2: clear with prior knowledge, over TLS by ALPN

How much
  --connections N         connections (16; connect: 64; websockets: 1000)
  --threads N             threads (1)
  --streams N             with --h2: requests at the same time on a connection (1)
  --close                 a new connection per request
  --rate R                open loop: R requests a second, each due at its time; latency counts
                          from there. Without it: as fast as answers come
  --requests N            end after N requests
  --duration T            end after T (10s when --requests is not given): 500ms, 10s, 2m
  --timeout T             how long a request may take, connecting included (5s)

What is a failure
  --expect-status LIST    statuses that are no failure: 200,301-308 (200-399)
  --expect-body-bytes N   the length every body must have
  --expect-body-prefix S  what every body must begin with
  --no-retry              a kept connection that was closed under a request is a failure at once

WebSockets
  --every-ms MS           between two messages on one connection (1000)
  --ping                  send pings instead of messages, and ignore what the server sends
  --message-bytes N       the least length of a message

TLS
  --tls                   targets without http:// are over TLS (handshakes: they always are)
  --cacert FILE           certificates that may sign the server's (PEM); and it must cover the name
  --insecure              any certificate will do
  --expect-name NAME      the name that the certificate must cover (sni: the one asked for)
  --sni NAME              ask for this name instead of the target's; again: several in turn
  --sni-file FILE         names, one in a line; behind it what its certificate must cover, if that
                          is another
  --sni-random            names in random order
  --cert FILE --key FILE  the client's certificate; its key may be in the same file
  --tls-version V         1.2 or 1.3 (both)
  --ciphers LIST          cipher suites, by their names in the standards, OpenSSL or rustls
  --groups LIST           groups of the key exchange (X25519MLKEM768:X25519:P-256:P-384)
  --alpn LIST             protocols, as in h2,http/1.1 (requests: HTTP/1 only; --h2: h2)
  --resume HOW            sessions: never, always (names without one get one, unmeasured),
                          tickets (as a browser), ids (likewise; TLS 1.2 without tickets) (never)

What is shown
  --quiet                 no line on standard error each second
  --json                  print JSON instead of a table
  --html FILE             write the report as a page with charts, too
  --marks FILE            show what happened meanwhile: lines that others append to this file, or
                          write to this pipe, as in 'reload' or '2026-11-28T03:01:55Z reload'
  --title TEXT            the name of the run
  --timeline MS           print rate, failures and longest latency of every MS milliseconds

It exits with 0 when nothing failed, 1 when something did, 2 when it could not begin.
";
