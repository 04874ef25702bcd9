//! TLS towards a server: what its connections and probes are opened with.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use ballast_model as model;
use ballast_tls::rustls::ClientConfig;

/// TLS of one `server` line. Generations whose lines say the same of TLS share it, and with it the
/// sessions that can be resumed.
///
/// Its configuration is the one that the words of the line were compiled to, until a command
/// replaces it.
pub struct ServerTls {
    config: ArcSwapOption<ClientConfig>,
    sni: Sni,
}

/// The name that connections of a server line send, `sni`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sni {
    /// None, or the same for every exchange.
    Fixed(Option<Arc<str>>),
    /// Each exchange evaluates the expression.
    PerExchange,
}

impl ServerTls {
    /// TLS of a line, as it was compiled.
    pub fn new(line: &model::ServerTls) -> Self {
        Self {
            config: ArcSwapOption::new(
                line.context
                    .compiled()
                    .map(|compiled| Arc::clone(compiled.config())),
            ),
            sni: match &line.sni {
                None => Sni::Fixed(None),
                Some(expr) => match expr.constant() {
                    Some(text) => Sni::Fixed(Some(text.into())),
                    None => Sni::PerExchange,
                },
            },
        }
    }

    /// What connections are opened with. It holds the sessions that can be resumed. `None` where
    /// nothing was compiled: no connection can be opened then.
    pub fn config(&self) -> Option<Arc<ClientConfig>> {
        self.config.load_full()
    }

    /// Whether a connection that was opened with `config` is one that would be opened now.
    pub fn is_configured_as(&self, config: &Arc<ClientConfig>) -> bool {
        let now = self.config.load();
        now.as_ref().is_some_and(|now| Arc::ptr_eq(now, config))
    }

    /// Sets what connections are opened with from now on. Idle connections that were opened with
    /// another configuration are not used again.
    pub fn configure(&self, config: Arc<ClientConfig>) {
        self.config.store(Some(config));
    }

    /// The name that connections send.
    pub fn sni(&self) -> &Sni {
        &self.sni
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No keys.
        out.debug_struct("ServerTls")
            .field("sni", &self.sni)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ballast_expr::Expr;

    use super::*;

    #[test]
    fn only_a_text_is_the_same_for_every_exchange() {
        for (text, fixed) in [
            ("str(a.example)", Some("a.example")),
            ("str(A.example),lower", None),
            ("req.hdr(host)", None),
            ("hostname", None),
        ] {
            let line = model::ServerTls {
                sni: Some(Expr::parse(text).unwrap()),
                ..model::ServerTls::default()
            };
            let sni = match fixed {
                Some(name) => Sni::Fixed(Some(name.into())),
                None => Sni::PerExchange,
            };
            assert_eq!(ServerTls::new(&line).sni(), &sni, "{text}");
        }
        assert_eq!(
            ServerTls::new(&model::ServerTls::default()).sni(),
            &Sni::Fixed(None)
        );
    }
}
