//! Where requests go that no server is chosen for: `dispatch`, `transparent`.
//!
//! Source: HAProxy configuration manual, section 4.2; HAProxy's observed behaviour.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ballast_model::{Address, PortSpec, Server};
use ballast_syntax::Diagnostic;

use crate::address::{self, AddressForm, AddressPort};
use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "dispatch",
        Sections::BACK_ONLY,
        "<address>:<port>",
        "the address of requests that persistence gives no server, without balance",
        |draft, args, context| {
            let text = args.text("<address>:<port>")?;
            let wants = AddressForm {
                port: true,
                ..AddressForm::default()
            };
            let environment = context.machine.environment();
            let wrong = |error: String| args.wrong(format!("'dispatch' : {error}"));
            let parsed = address::parse(text, wants, &environment).map_err(wrong)?;
            let address = context.resolve_address(&parsed.address).map_err(wrong)?;
            draft.back.dispatch = match (address, parsed.port) {
                (Address::Inet(known), AddressPort::Fixed(port, _)) => {
                    Some(SocketAddr::new(known.ip(), port))
                }
                _ => return Err(wrong(format!("'{text}' is no address with a port"))),
            };
            args.end()?;
            deprecated(args, context, &format!("server dispatch {text}"));
            Ok(())
        },
    )
    .examples("dispatch 192.0.2.1:80", "dispatch 192.0.2.1"),
    R::new(
        "transparent",
        Sections::BACK_ONLY,
        "",
        "the former form of 'option transparent'",
        |draft, args, context| {
            args.end()?;
            draft.back.options.transparent = true;
            deprecated(args, context, "server transparent 0.0.0.0");
            Ok(())
        },
    ),
];

fn deprecated(args: &Args<'_>, context: &mut Context<'_>, instead: &str) {
    let message = format!("'{}' was removed in HAProxy 3.3", args.keyword());
    let diagnostic = Diagnostic::notice("deprecated", message)
        .at(args.span())
        .help(format!("write: {instead}"))
        .replace(args.span(), instead.to_owned());
    context.report(diagnostic);
}

/// What takes requests without a server, where nothing balances: `dispatch`, else `option
/// transparent`.
pub(super) fn finish(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_back() {
        return;
    }
    let is_balanced = draft.section_state.is_balanced;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let address = match draft.back.dispatch {
        Some(_) if is_balanced => {
            let message = format!(
                "dispatch address of proxy '{}' will be ignored in balance mode.",
                draft.name
            );
            context.report(Diagnostic::warning("ignored-words", message));
            return;
        }
        Some(address) => address,
        // The address that the client wanted, and its port.
        None if draft.back.options.transparent && !is_balanced => any,
        None => return,
    };
    // Its name is how logs say that there is none.
    let mut server = Server::new("<NOSRV>".to_owned(), Address::Inet(address));
    if address.port() == 0 {
        server.port_mapping = PortSpec::Offset(0);
    }
    // HAProxy keeps no such connection for others.
    server.settings.idle_count_max = Some(0);
    draft.back.direct = Some(Arc::new(server));
}
