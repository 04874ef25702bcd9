//! Changes the request into what the server gets, as far as that does not depend on which server
//! it is.

use std::net::IpAddr;

use ballast_expr::bytes_of_text;
use ballast_message::NoRoom;
use ballast_model::ForwardFor;
use ballast_mux::{announce_request, take_connection_end};

use super::forwarded;
use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::persistence;
use crate::view::made_unique_id;

/// Applies the options that change a request on its way.
pub(crate) fn request(context: &Context<'_>, exchange: &mut Exchange) -> Flow {
    match change(context, exchange) {
        Ok(()) => Flow::Continue(()),
        Err(NoRoom) => Flow::Break(Exit::RequestRewrite),
    }
}

fn change(context: &Context<'_>, exchange: &mut Exchange) -> Result<(), NoRoom> {
    // A rule may have added a `Connection` field.
    exchange.closes_server = take_connection_end(exchange.request.fields_mut())?.close;
    add_unique_id(context, exchange)?;
    let Some(backend) = context.backend_of(exchange) else {
        return Ok(());
    };
    let (front, back) = (&context.frontend.model.common, &backend.model.common);
    let addresses = exchange.settings.addresses;
    let ip = |address: Option<std::net::SocketAddr>| address.map(|address| address.ip());
    let (source, destination) = (ip(addresses.source), ip(addresses.destination));
    let forward_for = [&front.forward_for, &back.forward_for];
    add_address(forward_for, source, exchange)?;
    let original_to = [&front.original_to, &back.original_to];
    add_address(original_to, destination, exchange)?;
    if context.session.pending_handshake().is_some() {
        // Somebody may repeat what a client once sent (RFC 8470, 5.1).
        exchange.request.fields_mut().add(b"early-data", b"1")?;
    }
    if let Some(option) = &backend.model.forwarded {
        let value = forwarded::value(option, context, exchange);
        forwarded::append(exchange.request.fields_mut(), &value)?;
    }
    if let Some(cookie) = &backend.model.cookie {
        let fields = exchange.request.fields_mut();
        context.local.with_memory(|memory| {
            persistence::hide_from_server(cookie, fields, &mut memory.text)
        })?;
    }
    let stays = super::respond::keeps_server_connection(context, exchange);
    let closes = exchange.closes_server || !stays && !backend.model.options.pretend_keepalive;
    let announced = announce_request(&mut exchange.request, exchange.request_body, closes)?;
    exchange.request_body = announced.body;
    exchange.has_made_key = announced.has_made_key;
    Ok(())
}

/// Adds an address as frontend and backend ask: either may ask for the field, or except a network,
/// the backend's name for it wins, and `if-none` holds where all that ask say so. A backend cannot
/// make a frontend believe what a client says of itself.
fn add_address(
    [front, back]: [&Option<ForwardFor>; 2],
    address: Option<IpAddr>,
    exchange: &mut Exchange,
) -> Result<(), NoRoom> {
    let (Some(naming), Some(address)) = (back.as_ref().or(front.as_ref()), address) else {
        return Ok(());
    };
    let mut asking = [front, back].into_iter().flatten();
    if asking
        .clone()
        .any(|option| option.except.is_some_and(|net| net.contains(address)))
    {
        return Ok(());
    }
    let name = naming.header.as_bytes();
    let fields = exchange.request.fields_mut();
    if asking.all(|option| option.if_none) && fields.contains(name) {
        return Ok(());
    }
    let mut text = [0_u8; 64];
    let written = write_into(&mut text, address);
    fields.add(name, &text[..written])
}

/// Writes an address without an allocation; how many bytes it took.
fn write_into(text: &mut [u8; 64], address: IpAddr) -> usize {
    use std::io::Write as _;
    let mut room = text.as_mut_slice();
    // 64 bytes hold every address: the longest IPv6 text has 45.
    let _ = write!(room, "{}", address.to_canonical());
    64 - room.len()
}

/// `unique-id-header`.
fn add_unique_id(context: &Context<'_>, exchange: &mut Exchange) -> Result<(), NoRoom> {
    let common = &context.frontend.model.common;
    if common.unique_id_format.is_none() {
        return Ok(());
    }
    let _ = made_unique_id(context, exchange);
    if let Some(name) = &common.unique_id_header {
        let name = name.to_ascii_lowercase();
        let id = exchange.unique_id.get().unwrap_or_default();
        exchange
            .request
            .fields_mut()
            .add(&bytes_of_text(&name), id)?;
    }
    Ok(())
}
