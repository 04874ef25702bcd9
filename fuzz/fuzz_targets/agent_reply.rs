//! Replies of agents and of checked servers: whatever arrives, no panic, and an
//! end of the connection always decides.
#![no_main]

use ballast_wire::agent::{self, AgentReplyParse};
use ballast_wire::check::{Expectation, ReplyVerdict};
use libfuzzer_sys::fuzz_target;

const EXPECTATIONS: [Expectation; 7] = [
    Expectation::LdapBound,
    Expectation::MysqlPacket,
    Expectation::PgsqlAuthentication,
    Expectation::RedisPong,
    Expectation::SmtpGreeting,
    Expectation::SmtpSuccess,
    Expectation::SslHello,
];

fuzz_target!(|input: &[u8]| {
    assert_ne!(agent::parse(input, true), AgentReplyParse::Incomplete);
    let _ = agent::parse(input, false);
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
