//! What a head says of one hop only: the connection's end, another protocol, `TE`.
//!
//! As in HAProxy, `close` and `keep-alive` are removed when a head is received: rules, captures
//! and the sizes in logs do not see them, and they are not forwarded. Where they are found later,
//! a rule or an error page of the configuration added them, and they are obeyed. What the next hop is
//! told is composed here, after all rules.

use ballast_message::{
    ConnectionOptions, Fields, NoRoom, Request, Version, connection_options, keep_only_trailers,
    remove_connection_options, remove_http2_upgrades,
};

use crate::websocket;

/// Removes the options about the connection's end. Returns the options that were there.
///
/// # Errors
/// None in practice: values only shrink. [`NoRoom`] is passed on all the same.
pub fn take_connection_end(fields: &mut Fields) -> Result<ConnectionOptions, NoRoom> {
    let said = connection_options(fields);
    let hop = ConnectionOptions {
        close: true,
        keep_alive: true,
        upgrade: false,
    };
    remove_connection_options(fields, hop)?;
    Ok(said)
}

/// Writes into a request what it says of the hop to its server: no `TE` but `trailers`, no HTTP/2 among the
/// protocols, a key if it asks for a WebSocket, and what becomes of the connection. It must not say
/// that yet ([`take_connection_end`]). Returns whether the key was made here.
///
/// # Errors
/// [`NoRoom`].
pub fn announce_hop(request: &mut Request, closes: bool) -> Result<bool, NoRoom> {
    let version = request.version();
    keep_only_trailers(request.fields_mut());
    remove_http2_upgrades(request.fields_mut());
    let asks_protocol = connection_options(request.fields()).upgrade;
    let has_made_key = asks_protocol && websocket::add_key(request)?;
    let end = ConnectionEnd {
        closes,
        // Servers take requests of HTTP/1.1.
        version,
        peer: Version::Http11,
        asks_protocol,
    };
    end.write(request.fields_mut())?;
    Ok(has_made_key)
}

/// What `Connection` says of the connection's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionEnd {
    /// Whether the connection closes after the exchange.
    pub(crate) closes: bool,
    /// The version of the message, which has one of the two as its default.
    pub(crate) version: Version,
    /// The version of the peer that is told.
    pub(crate) peer: Version,
    /// Whether the message has the option `upgrade`. Then it says nothing of the end: many servers refuse
    /// a handshake that says more than `upgrade`.
    pub(crate) asks_protocol: bool,
}

impl ConnectionEnd {
    /// Adds the option, as the last field, if there is something to say.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub(crate) fn write(self, fields: &mut Fields) -> Result<(), NoRoom> {
        let is_old = self.version < Version::Http11;
        let option: &[u8] = match self.closes {
            _ if self.asks_protocol => return Ok(()),
            true if !is_old => b"close",
            false if is_old || self.peer < Version::Http11 => b"keep-alive",
            _ => return Ok(()),
        };
        fields.add(b"connection", option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_message::HeadLimits;

    #[test]
    fn one_field_tells_of_the_connection() {
        const OLD: Version = Version::Http10;
        const NEW: Version = Version::Http11;
        let rows = [
            (true, NEW, NEW, false, Some("close")),
            (true, NEW, OLD, false, Some("close")),
            (true, OLD, NEW, false, None),
            (true, OLD, OLD, false, None),
            (false, NEW, NEW, false, None),
            (false, NEW, OLD, false, Some("keep-alive")),
            (false, OLD, NEW, false, Some("keep-alive")),
            (false, OLD, OLD, false, Some("keep-alive")),
            (false, NEW, Version::Http2, false, None),
            (true, NEW, NEW, true, None),
            (false, OLD, NEW, true, None),
            (false, NEW, OLD, true, None),
        ];
        for (closes, version, peer, asks_protocol, expected) in rows {
            let end = ConnectionEnd {
                closes,
                version,
                peer,
                asks_protocol,
            };
            let mut fields = Fields::new(HeadLimits::default());
            end.write(&mut fields).unwrap();
            let expected = expected.map(str::as_bytes);
            assert_eq!(fields.first(b"connection"), expected, "{end:?}");
        }
    }

    /// The fields of a request, and those that its server gets.
    type Row<'r> = (&'r [(&'r str, &'r str)], &'r [(&'r str, &'r str)]);

    #[test]
    fn a_server_is_told_what_concerns_it() {
        let rows: [Row<'_>; 6] = [
            (&[], &[("connection", "close")]),
            (
                &[("connection", "x")],
                &[("connection", "x"), ("connection", "close")],
            ),
            (
                &[("connection", "upgrade"), ("upgrade", "foo")],
                &[("connection", "upgrade"), ("upgrade", "foo")],
            ),
            (
                &[("connection", "x, upgrade"), ("upgrade", "h2c, foo")],
                &[("connection", "x, upgrade"), ("upgrade", "foo")],
            ),
            (&[("upgrade", "h2c")], &[("connection", "close")]),
            (
                &[("te", "gzip, trailers"), ("te", "gzip")],
                &[("te", "trailers"), ("connection", "close")],
            ),
        ];
        for (received, expected) in rows {
            let mut request = Request::new(HeadLimits::default());
            request.set_version(Version::Http11);
            for (name, value) in received {
                let fields = request.fields_mut();
                fields.add(name.as_bytes(), value.as_bytes()).unwrap();
            }
            assert_eq!(announce_hop(&mut request, true), Ok(false));
            let fields = request.fields().iter();
            let sent: Vec<_> = fields.map(|field| (field.name, field.value)).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                .collect();
            assert_eq!(sent, expected, "{received:?}");
        }
    }
}
