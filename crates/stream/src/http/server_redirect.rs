//! `redir` of a server line: a redirect in place of a connection.

use ballast_message::{Method, Version};
use ballast_upstream::Slot;

use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::Exit;

/// `redir`: GET and HEAD requests are redirected to the server's public address.
pub(super) fn redirect(exchange: &mut Exchange, slot: &Slot) -> Option<Exit> {
    let prefix = slot.server().model.redirect_prefix.as_ref()?;
    if !matches!(exchange.method, Method::Get | Method::Head) {
        return None;
    }
    let mut location = Vec::with_capacity(prefix.len() + exchange.request.target().len());
    location.extend_from_slice(prefix.as_bytes());
    location.extend_from_slice(exchange.request.path_and_query());
    let response = &mut exchange.response;
    response.clear();
    response.set_version(Version::Http11);
    let made = response.set_status(302).and_then(|()| {
        let fields = response.fields_mut();
        fields.add(b"cache-control", b"no-cache")?;
        fields.add(b"content-length", b"0")?;
        fields.add(b"location", &location)
    });
    if made.is_err() {
        return Some(Exit::ServerRedirectFull);
    }
    exchange.prepared_answer = Some(PreparedAnswer::InExchange);
    Some(Exit::ServerRedirect)
}
