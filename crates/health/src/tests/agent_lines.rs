//! What an agent may write, and what is shown of it.

use super::*;

#[test]
fn an_agents_line_is_read_word_by_word() {
    let said = parse_agent(b"75%, ready\tUP maxconn:30 odd #all is well\r\nmore");
    assert_eq!(said.weight_percent, Some(75));
    assert_eq!(said.admin, Some(AgentAdmin::Ready));
    assert_eq!(said.state, Some(AgentState::Up));
    assert_eq!(said.maxconn, Some(30));
    assert_eq!(said.unknown.as_deref(), Some("odd"));
    assert_eq!(said.note, "all is well");
    assert_eq!(
        parse_agent(b"down#because").unknown.as_deref(),
        Some("down#because")
    );
    assert_eq!(parse_agent(b""), AgentAnswer::default());
    let shown = |line: &[u8]| {
        let mut server = Health::new(with_agent(), false, 0);
        server.agent_done(1, &parse_agent(line).with_static_weight(10), 0);
        (server.agent().last.info.clone(), server.weight_user())
    };
    let fixed = "Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.";
    for (line, info, weight) in [
        ("up", "via agent : up".to_owned(), 10),
        ("down # why", "via agent : down (why)".to_owned(), 10),
        ("up foo # why", "via agent : up (foo)".to_owned(), 10),
        ("UP", "via agent : UP".to_owned(), 10),
        ("Down foo # why", "via agent : Down (why)".to_owned(), 10),
        (
            "stopped 5x% # why",
            "via agent : stopped (why)".to_owned(),
            10,
        ),
        ("fail 50% # why", "via agent : fail (why)".to_owned(), 10),
        ("fail foo 5x%", "via agent : fail (foo)".to_owned(), 10),
        ("maxconn:+7", String::new(), 10),
        (
            "300%x",
            "agent warns : Absolute weight can only be between 0 and 256 inclusive.".to_owned(),
            10,
        ),
        (
            "maxconn: 5x%",
            "agent warns : Trailing garbage in weight string".to_owned(),
            10,
        ),
        ("foo 50%", "agent reports an error : foo".to_owned(), 10),
        ("200%", format!("agent warns : {fixed}"), 10),
        ("up 50%", format!("via agent : up ({fixed})"), 10),
        ("99999999999%", format!("agent warns : {fixed}"), 10),
        ("0%", String::new(), 0),
        ("5%", String::new(), 0),
        ("101%", String::new(), 10),
        (
            "5x%",
            "agent warns : Trailing garbage in weight string".to_owned(),
            10,
        ),
        (
            "maxconn:x",
            "agent warns : maxconn string empty or preceded by garbage".to_owned(),
            10,
        ),
        (
            "maxconn:5x",
            "agent warns : Trailing garbage in maxconn string".to_owned(),
            10,
        ),
        (
            "maxconn:",
            "agent warns : Require <maxconn>.".to_owned(),
            10,
        ),
        ("50", "agent reports an error : 50".to_owned(), 10),
    ] {
        assert_eq!(shown(line.as_bytes()), (info, weight), "{line}");
    }
}
