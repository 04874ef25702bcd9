//! Replies of agents and of checked servers: whatever arrives, no panic, and an
//! end of the connection always decides about the latter.
#![no_main]

use ballast_health::parse_agent;
use ballast_wire::check::{Expectation, ReplyVerdict};
use libfuzzer_sys::fuzz_target;

const EXPECTATIONS: [Expectation; 9] = [
    Expectation::LdapBound,
    Expectation::MysqlPacket,
    Expectation::PgsqlAuthentication,
    Expectation::RedisPong,
    Expectation::SmtpGreeting,
    Expectation::SmtpHello,
    Expectation::SmtpQuit,
    Expectation::SpopHello {
        frame_bytes_max: 16380,
    },
    Expectation::SslHello,
];

fuzz_target!(|input: &[u8]| {
    let said = parse_agent(input).with_static_weight(10);
    // A byte that is no UTF-8 is shown as a character of three.
    assert!(said.note.len() <= 3 * input.len());
    for expectation in EXPECTATIONS {
        assert_ne!(
            expectation.parse_reply(input, true),
            ReplyVerdict::Undecided
        );
        if let ReplyVerdict::Pass { bytes, .. } = expectation.parse_reply(input, false) {
            assert!(bytes <= input.len());
        }
    }
});
