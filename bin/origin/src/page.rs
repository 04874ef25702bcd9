//! The page for a browser: which server responded, and what to try next.

use crate::Server;

/// The page of one server. The colour is the server's name when that is a colour.
pub(crate) fn page(server: &Server) -> String {
    let name = escaped(&server.name);
    let state = if server.is_up.get() { "up" } else { "down" };
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>{name} answers</title>
<style>
  body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 12vh auto; padding: 0 1rem }}
  h1 {{ border-left: .6rem solid {name}; padding-left: .8rem }}
  button {{ font: inherit; padding: .3rem 1rem }}
  code {{ background: #8882; padding: .1rem .3rem }}
</style>
<h1>This is {name}.</h1>
<p>Request {requests} on {connections} connections; <code>/health</code> says {state}.</p>
<p><button onclick="location.reload()">Ask again</button></p>
<p>Try <a href="/echo"><code>/echo</code></a> (the request as it arrived here),
<a href="/x?delay=1000"><code>/x?delay=1000</code></a>,
<a href="/x?status=500"><code>/x?status=500</code></a>,
<a href="/x?size=100000&amp;chunked=1"><code>/x?size=100000&amp;chunked=1</code></a>,
or take this server out with <a href="/down"><code>/down</code></a>.</p>
</html>
"#,
        requests = server.requests.get(),
        connections = server.connections.get(),
    )
}

/// The text, without characters that have a meaning in HTML and CSS.
fn escaped(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
        .collect()
}
