//! Socket options that all binds share.

use ballast_model::Config;

/// Socket options that come from the global section and not from binds or frontends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct SocketDefaults {
    connection_count_max: u32,
    receive_buffer: Option<u32>,
    send_buffer: Option<u32>,
}

impl SocketDefaults {
    pub(crate) fn of(config: &Config, connection_count_max: u32) -> Self {
        let tune = &config.global.tune;
        Self {
            connection_count_max,
            receive_buffer: tune.receive_buffer_client,
            send_buffer: tune.send_buffer_client,
        }
    }
}
