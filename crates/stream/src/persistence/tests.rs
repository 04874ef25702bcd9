//! Each row was recorded from HAProxy 2.6: what the server saw, what the client got, and the
//! two letters.

use super::*;
use ballast_message::HeadLimits;

fn cookie(mode: CookieMode) -> CookiePersistence {
    CookiePersistence {
        name: "SRV".into(),
        mode,
        indirect: false,
        nocache: false,
        postonly: false,
        preserve: false,
        httponly: false,
        secure: false,
        domains: Vec::new(),
        idle_max: None,
        life_max: None,
        dynamic: false,
        attributes: Vec::new(),
    }
}

fn fields(lines: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new(HeadLimits::default());
    for (name, value) in lines {
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    fields
}

fn lines(fields: &Fields) -> Vec<String> {
    fields
        .iter()
        .map(|field| String::from_utf8_lossy(field.value).into_owned())
        .collect()
}

const SERVERS_OWN: [(&str, &str); 3] = [
    ("set-cookie", "a=b"),
    ("set-cookie", "SRV=orig; path=/x; secure"),
    ("set-cookie", "SRV=second"),
];

fn valid(keeps_server: bool) -> CookieEdit<'static> {
    CookieEdit {
        server: Some(b"c1"),
        keeps_server,
        refresh: false,
        first_given: None,
        post: false,
        may_be_kept: false,
        now: 1_795_253_858,
    }
}

fn fresh() -> CookieEdit<'static> {
    valid(false)
}

#[test]
fn rewrite_puts_the_server_in_place_of_the_value() {
    let mut response = fields(&SERVERS_OWN);
    let done = write_cookie(&cookie(CookieMode::Rewrite), &fresh(), &mut response).unwrap();
    assert_eq!(done, ServerCookie::Rewritten);
    assert_eq!(
        lines(&response),
        ["a=b", "SRV=c1; path=/x; secure", "SRV=c1"]
    );
}

#[test]
fn prefix_puts_the_server_before_the_value_and_takes_it_off_again() {
    let rules = cookie(CookieMode::Prefix);
    let mut response = fields(&SERVERS_OWN);
    assert_eq!(
        write_cookie(&rules, &fresh(), &mut response).unwrap(),
        ServerCookie::Rewritten
    );
    assert_eq!(
        lines(&response),
        ["a=b", "SRV=c1~orig; path=/x; secure", "SRV=c1~second"]
    );

    let mut request = fields(&[("cookie", "x=y; SRV=c1~hello; z=1")]);
    assert_eq!(
        received_cookies(&rules, &request).next().unwrap().server,
        b"c1"
    );
    hide_from_server(&rules, &mut request, &mut Vec::new()).unwrap();
    assert_eq!(lines(&request), ["x=y; SRV=hello; z=1"]);
}

#[test]
fn insert_deletes_the_servers_own_and_adds_ours_once() {
    let rules = cookie(CookieMode::Insert);
    let mut response = fields(&SERVERS_OWN);
    assert_eq!(
        write_cookie(&rules, &fresh(), &mut response).unwrap(),
        ServerCookie::Inserted
    );
    assert_eq!(lines(&response), ["a=b", "SRV=c1; path=/"]);

    let mut response = fields(&SERVERS_OWN);
    assert_eq!(
        write_cookie(&rules, &valid(true), &mut response).unwrap(),
        ServerCookie::Deleted
    );
    assert_eq!(lines(&response), ["a=b"]);
}

#[test]
fn postonly_and_preserve_leave_the_servers_own_alone() {
    let mut rules = cookie(CookieMode::Insert);
    (rules.postonly, rules.preserve) = (true, true);
    let mut response = fields(&SERVERS_OWN);
    assert_eq!(
        write_cookie(&rules, &fresh(), &mut response).unwrap(),
        ServerCookie::Provided
    );
    assert_eq!(response.len(), 3);

    let mut response = fields(&[]);
    let post = CookieEdit {
        post: true,
        ..fresh()
    };
    assert_eq!(
        write_cookie(&rules, &post, &mut response).unwrap(),
        ServerCookie::Inserted
    );
    assert_eq!(lines(&response), ["SRV=c1; path=/"]);
}

#[test]
fn indirect_hides_the_cookie_from_the_server() {
    let mut rules = cookie(CookieMode::Insert);
    rules.indirect = true;
    for (sent, seen) in [
        ("x=y; SRV=c1; z=1", vec!["x=y; z=1"]),
        ("SRV=c1|AAAAA|AAAAA; z=1", vec!["z=1"]),
        ("SRV=bad", vec![]),
        ("q=\"a;SRV=c1\"; z=1", vec!["q=\"a;SRV=c1\"; z=1"]),
    ] {
        let mut request = fields(&[("cookie", sent)]);
        hide_from_server(&rules, &mut request, &mut Vec::new()).unwrap();
        assert_eq!(lines(&request), seen, "{sent}");
    }
}

#[test]
fn dates_are_written_as_haproxy_writes_them_and_expire() {
    let mut rules = cookie(CookieMode::Insert);
    rules.idle_max = Some(Duration::from_secs(1800));
    rules.life_max = Some(Duration::from_secs(28_800));
    (rules.httponly, rules.secure) = (true, true);
    rules.domains = vec!["a.com".into(), ".b.com".into()];
    rules.attributes = vec!["SameSite=None".into()];
    let mut response = fields(&[]);
    write_cookie(&rules, &fresh(), &mut response).unwrap();
    assert_eq!(
        lines(&response),
        [
            "SRV=c1|awFmZ|awFmZ; path=/; domain=a.com; domain=.b.com; HttpOnly; Secure; SameSite=None"
        ]
    );

    let request = fields(&[("cookie", "SRV=c1|awFmZ|awFmZ")]);
    let cookie = received_cookies(&rules, &request).next().unwrap();
    assert_eq!(cookie.server, b"c1");
    let now = 1_795_253_858;
    assert_eq!(cookie.check_age(&rules, now + 10), Ok(()));
    assert_eq!(
        cookie.check_age(&rules, now + 1900),
        Err(ClientCookie::Expired)
    );
    rules.idle_max = None;
    assert_eq!(
        cookie.check_age(&rules, now + 30_000),
        Err(ClientCookie::Old)
    );
}

#[test]
fn nocache_marks_what_a_shared_cache_could_keep() {
    let mut rules = cookie(CookieMode::Insert);
    rules.nocache = true;
    let kept = CookieEdit {
        may_be_kept: true,
        ..fresh()
    };
    let mut response = fields(&[]);
    write_cookie(&rules, &kept, &mut response).unwrap();
    assert_eq!(response.first(b"cache-control"), Some(&b"private"[..]));
    let mut response = fields(&[]);
    write_cookie(&rules, &fresh(), &mut response).unwrap();
    assert!(!response.contains(b"cache-control"));
}
