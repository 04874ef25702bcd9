//! Lines and states recorded from HAProxy 2.6, and properties that hold for any reports.

mod agent_lines;

use proptest::prelude::*;

use super::*;

const CHECKED: HealthSettings = HealthSettings {
    agent: None,
    check: Some(CheckSettings::HEALTH),
    error_limit: 3,
    init_state: InitState::Up,
    observe: Some(Observe::Layer7),
    on_error: OnError::FailCheck,
    on_marked_down_shutdown: false,
    on_marked_up_shutdown_backups: false,
    slowstart_ms: 0,
    tracks: false,
    weight: 10,
};

fn passed() -> CheckOutcome {
    CheckOutcome::new(CheckStatus::L4Ok, 0)
}

fn refused() -> CheckOutcome {
    CheckOutcome::new(CheckStatus::L4Connection, 0).with_info("Connection refused")
}

fn changes(effects: &[Effect]) -> Vec<StateChange> {
    let change = |effect: &Effect| match effect {
        Effect::Transition(transition) => Some(transition.change),
        _ => None,
    };
    effects.iter().filter_map(change).collect()
}

fn lines(effects: &[Effect], reasons: bool, counts: &BackendCounts) -> Vec<String> {
    let line = |effect: &Effect| match effect {
        Effect::Transition(change) => Some(change.line("be", "s1", false, None, reasons, counts)),
        Effect::CheckReport(report) => Some(report.line("be", "s1", false)),
        _ => None,
    };
    effects.iter().filter_map(line).collect()
}

#[test]
fn the_first_failure_takes_an_unchecked_server_down() {
    let mut server = Health::new(CHECKED, false, 0);
    assert_eq!(server.status_text(&server, None), "UP 1/3");
    assert_eq!(server.check().interval_ms(), 2000);
    let effects = server.check_done(10, refused());
    assert_eq!(changes(&effects), [StateChange::Down]);
    assert_eq!(
        effects[0],
        Effect::Balance(BalancerUpdate {
            step: 16,
            usable: false,
            weight_user: 10
        })
    );
    assert!(effects.contains(&Effect::RequeuePending));
    let counts = BackendCounts {
        active: 1,
        ..BackendCounts::default()
    };
    assert_eq!(
        lines(&effects, true, &counts)[1],
        "Server be/s1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", \
         check duration: 0ms. 1 active and 0 backup servers left. 0 sessions active, 0 requeued, \
         0 remaining in queue."
    );
    assert_eq!(
        lines(
            &effects,
            false,
            &BackendCounts {
                backup: 1,
                ..BackendCounts::default()
            }
        ),
        [
            "Health check for server be/s1 failed, reason: Layer4 connection problem, info: \
             \"Connection refused\", check duration: 0ms, status: 0/2 DOWN.",
            "Server be/s1 is DOWN. 0 active and 1 backup servers left. Running on backup. \
             0 sessions active, 0 requeued, 0 remaining in queue.",
        ]
    );
}

#[test]
fn what_an_operator_said_is_forgotten_and_what_a_check_found_is_not() {
    let agented = HealthSettings {
        agent: Some(CheckSettings::AGENT),
        ..CHECKED
    };
    // No check has run since.
    let mut server = Health::new(agented, false, 0);
    server.force_health(1, ForcedState::Down);
    server.force_agent(1, false);
    assert_eq!(changes(&server.forget_forced(2)), [StateChange::Up]);
    assert_eq!(server.status_text(&server, None), "UP 1/3");
    assert!(!server.check().forced && !server.agent().forced);
    // A check found the same.
    server.force_health(3, ForcedState::Down);
    server.check_done(4, refused());
    assert_eq!(changes(&server.forget_forced(5)), []);
    assert_eq!(server.operational(), Operational::Stopped);
    // The agent was overruled, and the check still fails.
    server.force_agent(6, false);
    assert_eq!(changes(&server.forget_forced(7)), []);
    assert!(server.agent().is_up());
    // One check that passes is not enough to come up: the state is still the operator's.
    let mut server = Health::new(CHECKED, false, 0);
    server.force_health(1, ForcedState::Down);
    assert_eq!(changes(&server.check_done(2, passed())), []);
    assert_eq!(changes(&server.forget_forced(3)), [StateChange::Up]);
}

#[test]
fn rise_and_fall_are_counted_as_haproxy_counts() {
    let mut server = Health::new(CHECKED, false, 0);
    server.check_done(1, passed());
    let mut seen = vec![server.status_text(&server, None)];
    for verdict in [
        refused(),
        refused(),
        refused(),
        refused(),
        passed(),
        passed(),
        passed(),
    ] {
        server.check_done(2, verdict);
        seen.push(server.status_text(&server, None));
        server.check_invariants();
    }
    assert_eq!(
        seen,
        [
            "UP", "UP 2/3", "UP 1/3", "DOWN", "DOWN", "DOWN 1/2", "UP", "UP"
        ]
    );
    assert_eq!(server.counters().failed_checks, 3);
    assert_eq!(server.counters().down_transitions, 1);
}

#[test]
fn intervals_follow_the_state() {
    let check = CheckSettings {
        downinter_ms: Some(9000),
        fastinter_ms: Some(300),
        ..CheckSettings::HEALTH
    };
    let mut server = Health::new(
        HealthSettings {
            check: Some(check),
            ..CHECKED
        },
        false,
        0,
    );
    let mut seen = vec![server.check().interval_ms()];
    for verdict in [
        passed(),
        refused(),
        refused(),
        refused(),
        passed(),
        passed(),
    ] {
        server.check_done(2, verdict);
        seen.push(server.check().interval_ms());
    }
    assert_eq!(seen, [300, 2000, 300, 300, 9000, 300, 2000]);
}

#[test]
fn a_404_drains_only_who_is_up() {
    let maybe = || CheckOutcome::new(CheckStatus::L7Conditional, 0).with_code(404);
    let mut server = Health::new(CHECKED, false, 0);
    server.check_done(1, passed());
    assert_eq!(
        changes(&server.check_done(2, maybe())),
        [StateChange::Stopping]
    );
    assert_eq!(server.status_text(&server, None), "NOLB");
    assert_eq!(changes(&server.check_done(3, passed())), [StateChange::Up]);
    for _ in 0..3 {
        server.check_done(4, refused());
    }
    for _ in 0..5 {
        assert!(changes(&server.check_done(5, maybe())).is_empty());
    }
    assert_eq!(server.status_text(&server, None), "DOWN");
    assert_eq!(server.check().last.status, CheckStatus::L7Status);
}

fn said(word: &[u8]) -> AgentAnswer {
    parse_agent(word)
}

fn with_agent() -> HealthSettings {
    HealthSettings {
        agent: Some(CheckSettings::AGENT),
        ..CHECKED
    }
}

#[test]
fn an_agent_does_not_end_what_a_check_began() {
    let maybe = || CheckOutcome::new(CheckStatus::L7Conditional, 0).with_code(404);
    let mut server = Health::new(with_agent(), false, 0);
    server.check_done(1, passed());
    server.check_done(2, maybe());
    assert!(changes(&server.agent_done(3, &said(b"up"), 0)).is_empty());
    assert_eq!(server.operational(), Operational::Stopping);
    // It can take the server down; then it was the agent, and its word ends that.
    server.agent_done(4, &said(b"down"), 0);
    let effects = server.agent_done(5, &said(b"up"), 0);
    assert_eq!(changes(&effects), [StateChange::Up]);
    // A line without the check leaves nobody who could end it.
    server.check_done(6, maybe());
    assert_eq!(server.operational(), Operational::Stopping);
    let mut unchecked = with_agent();
    unchecked.check = None;
    server.reconfigure(7, unchecked);
    assert_eq!(server.operational(), Operational::Running);
    // What an operator said stays.
    server.force_health(8, ForcedState::Stopping);
    unchecked.weight = 5;
    server.reconfigure(9, unchecked);
    assert_eq!(server.operational(), Operational::Stopping);
}

#[test]
fn a_server_leaves_maintenance_as_the_tracked_one_is() {
    let tracker = HealthSettings {
        check: None,
        tracks: true,
        ..with_agent()
    };
    let mut tracked = Health::new(CHECKED, false, 0);
    let mut server = Health::new(tracker, false, 0);
    let told = |tracked: &Health, server: &mut Health| server.copy_tracked(1, tracked);
    told(&tracked, &mut server);
    for (forced, state) in [
        (ForcedState::Down, Operational::Stopped),
        (ForcedState::Stopping, Operational::Stopping),
        (ForcedState::Up, Operational::Running),
    ] {
        server.set_maint(2);
        tracked.force_health(2, forced);
        told(&tracked, &mut server);
        server.set_drain(3);
        assert_eq!(server.operational(), state, "{forced:?}");
        server.set_ready(4);
        assert_eq!(server.operational(), state, "{forced:?}");
        // The agent speaks for a server only where the tracked one is up.
        server.agent_done(5, &said(b"up"), 0);
        assert_eq!(server.operational(), state, "{forced:?}");
    }
    // Both leave it at once, and one line says how.
    server.agent_done(6, &said(b"down"), 0);
    tracked.set_maint(7);
    told(&tracked, &mut server);
    tracked.set_ready(8);
    let effects = told(&tracked, &mut server);
    assert_eq!(
        changes(&effects),
        [StateChange::LeavesMaint { forced: false }]
    );
    assert_eq!(server.operational(), Operational::Stopped);
}

#[test]
fn what_an_agent_said_in_maintenance_holds_after_it() {
    let mut server = Health::new(with_agent(), false, 0);
    server.set_maint(1);
    server.agent_done(2, &said(b"down"), 0);
    server.set_ready(3);
    assert_eq!(server.operational(), Operational::Stopped);
    server.check_done(4, passed());
    assert_eq!(server.operational(), Operational::Stopped);
    server.agent_done(5, &said(b"up"), 0);
    assert_eq!(server.operational(), Operational::Running);
}

#[test]
fn numbers_of_checks_in_maintenance() {
    let numbers = |server: &Health| {
        let snapshot = server.snapshot(9);
        (snapshot.check_health, snapshot.check_state)
    };
    // A check that is off is not paused, and begins with nothing.
    let mut server = Health::new(CHECKED, false, 0);
    server.enable_check(false);
    server.set_maint(1);
    assert_eq!(numbers(&server), (0, 2));
    server.set_ready(2);
    assert_eq!(numbers(&server), (0, 2));
    assert_eq!(server.operational(), Operational::Running);
    // One that is set is shown, and forgotten behind it.
    let mut server = Health::new(CHECKED, false, 0);
    for (forced, health) in [
        (
            ForcedState::Up,
            CHECKED.check.map_or(0, |check| check.health_max()),
        ),
        (ForcedState::Down, 0),
    ] {
        server.set_maint(1);
        assert!(server.force_health(2, forced).is_empty());
        assert_eq!(numbers(&server).0, health);
        server.set_ready(3);
        assert_eq!(
            numbers(&server).0,
            CHECKED.check.map_or(0, |check| check.rise)
        );
        assert_eq!(server.operational(), Operational::Running);
    }
    // A server that was down keeps the number of a check that it does not have.
    let tracker = HealthSettings {
        check: None,
        tracks: true,
        ..with_agent()
    };
    let mut server = Health::new(tracker, false, 0);
    let tracked = Health::new(CHECKED, false, 0);
    let effects = server.agent_done(1, &said(b"down"), 0);
    let counts = BackendCounts::default();
    let line = effects.iter().find_map(|effect| match effect {
        Effect::Transition(change) => {
            Some(change.line("be", "s2", false, Some("be/s1"), true, &counts))
        }
        _ => None,
    });
    assert!(line.is_some_and(|line| line.starts_with("Server be/s2 is DOWN via be/s1. ")));
    assert_eq!(server.status_text(&tracked, Some("be/s1")), "DOWN 1/3");
    server.set_maint(2);
    assert_eq!(numbers(&server), (2, 0));
    server.set_ready(3);
    server.agent_done(4, &said(b"up"), 0);
    server.set_maint(5);
    assert_eq!(numbers(&server), (0, 0));
}

#[test]
fn traffic_speaks_as_configured() {
    let after = |on_error, healthy: bool| {
        let mut server = Health::new(
            HealthSettings {
                on_error,
                ..CHECKED
            },
            false,
            0,
        );
        if healthy {
            server.check_done(1, passed());
        }
        assert!(
            server
                .note_observation(2, Observation::WrongStatus)
                .is_empty()
        );
        assert!(server.note_observation(2, Observation::Response).is_empty());
        assert!(
            server
                .note_observation(2, Observation::WrongStatus)
                .is_empty()
        );
        assert!(
            server
                .note_observation(2, Observation::ReadTimeout)
                .is_empty()
        );
        let effects = server.note_observation(2, Observation::from_status(500));
        assert!(effects.contains(&Effect::Fastinter));
        (
            server.status_text(&server, None),
            lines(&effects, true, &BackendCounts::default()),
        )
    };
    assert_eq!(after(OnError::Fastinter, true).0, "UP");
    assert_eq!(after(OnError::FailCheck, true).0, "UP 2/3");
    let (status, said) = after(OnError::SuddenDeath, true);
    assert_eq!(status, "UP 1/3");
    assert_eq!(
        said,
        [
            "Health check for server be/s1 failed, reason: Health analyze, info: \"Detected 3 \
          consecutive errors, last one was: Wrong http response\", status: 1/3 UP."
        ]
    );
    let (status, said) = after(OnError::MarkDown, true);
    assert_eq!(status, "DOWN");
    assert_eq!(
        said[1],
        "Server be/s1 is DOWN, reason: Health analyze, info: \"Detected 3 consecutive errors, \
         last one was: Wrong http response\". 0 active and 0 backup servers left. 0 sessions \
         active, 0 requeued, 0 remaining in queue."
    );
}

#[test]
fn a_slow_start_takes_sixteen_steps() {
    let settings = HealthSettings {
        slowstart_ms: 4000,
        ..CHECKED
    };
    let mut server = Health::new(settings, false, 0);
    server.check_done(1, refused());
    server.check_done(1000, passed());
    let effects = server.check_done(2000, passed());
    assert_eq!(
        effects[0],
        Effect::Balance(BalancerUpdate {
            step: 1,
            usable: true,
            weight_user: 10
        })
    );
    assert_eq!(server.throttled_maxconn(100, 2500), 1);
    let mut seen = Vec::new();
    for now in [2000, 3000, 3999, 4000, 5000, 5999] {
        server.tick(now);
        seen.push((server.balance().step, server.throttle_percent()));
        server.check_invariants();
    }
    let steps = [(1, 6), (5, 31), (5, 31), (9, 56), (13, 81), (13, 81)];
    assert_eq!(seen, steps.map(|(step, percent)| (step, Some(percent))));
    assert_eq!(server.throttled_maxconn(100, 4000), 50);
    assert_eq!(server.tick_delay_ms(), Some(1000));
    assert_eq!(changes(&server.tick(6000)), [StateChange::Up]);
    assert_eq!(
        (server.throttle_percent(), server.tick_delay_ms()),
        (None, None)
    );
}

#[test]
fn init_state_is_what_is_believed_first() {
    for (init_state, status, needed) in [
        (InitState::Up, "UP 1/3", 0),
        (InitState::FullyUp, "UP", 0),
        (InitState::Down, "DOWN 1/2", 1),
        (InitState::FullyDown, "DOWN", 2),
    ] {
        let mut server = Health::new(
            HealthSettings {
                init_state,
                ..CHECKED
            },
            false,
            0,
        );
        assert_eq!(server.status_text(&server, None), status);
        let mut count = 0;
        while !server.balance().usable {
            server.check_done(1, passed());
            count += 1;
        }
        assert_eq!(count, needed, "{init_state:?}");
        server.set_maint(2);
        server.set_ready(3);
        assert_eq!(
            server.status_text(&server, None),
            status,
            "again after maintenance"
        );
    }
}

#[test]
fn sessions_end_when_asked_for() {
    let settings = HealthSettings {
        on_marked_down_shutdown: true,
        on_marked_up_shutdown_backups: true,
        ..CHECKED
    };
    let mut server = Health::new(settings, false, 0);
    assert!(
        server
            .check_done(1, refused())
            .contains(&Effect::ShutdownSessions)
    );
    server.check_done(2, passed());
    assert!(
        server
            .check_done(3, passed())
            .contains(&Effect::ShutdownBackupSessions)
    );
    assert!(server.set_maint(4).contains(&Effect::ShutdownSessions));
}

#[test]
fn levels_and_console_forms() {
    let mut server = Health::new(CHECKED, false, 0);
    let effects = server.check_done(1, refused());
    let Some(Effect::Transition(down)) = effects.get(2) else {
        panic!("{effects:?}")
    };
    assert_eq!(down.level(), LineSeverity::Alert);
    assert_eq!(
        no_server_line("backend", "b1", false),
        "backend b1 has no server available!"
    );
    assert_eq!(
        no_server_line("proxy", "b1", true),
        "proxy 'b1' has no server available!"
    );
}

#[derive(Clone, Debug)]
enum Report {
    Agent(String),
    Check(CheckStatus),
    Drain,
    Force(ForcedState),
    Maint,
    Observed(Observation),
    Ready,
    Resolved(bool),
    Tick,
    Weight(u32),
}

fn report() -> impl Strategy<Value = Report> {
    let verdicts = prop::sample::select(vec![
        CheckStatus::L4Ok,
        CheckStatus::L4Connection,
        CheckStatus::L7Ok,
        CheckStatus::L7Conditional,
        CheckStatus::L7Status,
        CheckStatus::Checked,
    ]);
    let words = prop::sample::select(vec!["up", "down", "drain", "ready", "maint", "50%", "x"]);
    let forced = prop::sample::select(vec![
        ForcedState::Down,
        ForcedState::Stopping,
        ForcedState::Up,
    ]);
    prop_oneof![
        4 => verdicts.prop_map(Report::Check),
        2 => (words.clone(), words).prop_map(|(a, b)| Report::Agent(format!("{a} {b}"))),
        1 => forced.prop_map(Report::Force),
        1 => Just(Report::Drain),
        1 => Just(Report::Maint),
        2 => Just(Report::Ready),
        1 => any::<bool>().prop_map(Report::Resolved),
        2 => Just(Report::Tick),
        1 => (0_u32..400).prop_map(Report::Weight),
        1 => Just(Report::Observed(Observation::ConnectError)),
    ]
}

fn hold(server: &mut Health, now: u64, report: &Report) -> Vec<Effect> {
    match report {
        Report::Agent(line) => server.agent_done(now, &parse_agent(line.as_bytes()), 1),
        Report::Check(status) => server.check_done(now, CheckOutcome::new(*status, 1)),
        Report::Drain => server.set_drain(now),
        Report::Force(forced) => server.force_health(now, *forced),
        Report::Maint => server.set_maint(now),
        Report::Observed(observed) => server.note_observation(now, *observed),
        Report::Ready => server.set_ready(now),
        Report::Resolved(resolved) => server.set_resolved(now, *resolved),
        Report::Tick => server.tick(now),
        Report::Weight(weight) => server.set_weight(now, *weight),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_reports_keep_the_invariants(
        reports in prop::collection::vec((report(), 0_u64..3000), 0..60),
        slowstart_ms in prop::sample::select(vec![0_u64, 1500, 7000]),
        agent: bool,
        disabled: bool,
    ) {
        let agent = agent.then_some(CheckSettings::AGENT);
        let settings = HealthSettings { agent, slowstart_ms, ..CHECKED };
        let mut server = Health::new(settings, disabled, 0);
        let tracker = HealthSettings { check: None, observe: None, tracks: true, ..CHECKED };
        let mut follower = Health::new(tracker, false, 0);
        follower.copy_tracked(0, &server);
        let mut told = server.balance();
        let mut now = 0;
        for (report, pause) in &reports {
            now += pause;
            let effects = hold(&mut server, now, report);
            server.check_invariants();
            for effect in &effects {
                if let Effect::Balance(balance) = effect {
                    told = *balance;
                }
            }
            prop_assert_eq!(told, server.balance(), "the balancer knows after {:?}", report);
            if effects.iter().any(|effect| matches!(effect, Effect::Transition(_))) {
                follower.copy_tracked(now, &server);
                follower.check_invariants();
            }
            let stopping = server.operational() == Operational::Stopping;
            prop_assert!(stopping || follower.balance().usable == server.balance().usable);
            let snapshot = server.snapshot(now);
            let mut successor = Health::new(settings, false, now);
            successor.restore(&snapshot, now);
            prop_assert_eq!(successor.snapshot(now).op_state, snapshot.op_state);
            successor.check_invariants();
            prop_assert_eq!(successor.check().health, server.check().health);
            prop_assert_eq!(successor.balance().usable, server.balance().usable);
            prop_assert!(!server.status_text(&server, None).is_empty());
        }
    }

    #[test]
    fn spreading_stays_within_its_percentage(interval in 1_u64..100_000, percent in 0_u32..60, random: u64) {
        let spread = spread_interval_ms(interval, percent, random);
        let reach = interval * u64::from(percent.min(50)) / 100;
        prop_assert!((interval - reach..=interval + reach).contains(&spread));
    }

    #[test]
    fn no_agent_line_breaks_the_reader(line: Vec<u8>) {
        let said = parse_agent(&line);
        prop_assert!(said.note.len() <= 3 * line.len());
    }
}

#[test]
fn another_line_keeps_what_is_believed() {
    let check = CheckSettings::HEALTH;
    let settings = HealthSettings {
        check: Some(check),
        slowstart_ms: 60_000,
        weight: 10,
        ..HealthSettings::default()
    };
    let mut health = Health::new(settings, false, 0);
    health.check_done(1, CheckOutcome::new(CheckStatus::L4Connection, 0));
    assert_eq!(health.operational(), Operational::Stopped);
    let mut other = settings;
    other.check = Some(CheckSettings {
        rise: 5,
        fall: 2,
        ..check
    });
    health.reconfigure(2, other);
    health.check_invariants();
    assert_eq!(health.operational(), Operational::Stopped);
    assert_eq!(health.counters().down_transitions, 1);
    health.set_weight(3, 20);
    health.reconfigure(3, other);
    assert_eq!(
        health.weight_user(),
        20,
        "an override stays where the line did not change"
    );
    other.weight = 30;
    other.check = None;
    health.reconfigure(4, other);
    assert_eq!(health.weight_user(), 30);
    assert_eq!(
        health.operational(),
        Operational::Running,
        "nobody else could say so"
    );
    health.set_maint(5);
    health.set_ready(6);
    assert_eq!(health.operational(), Operational::Starting);
    other.slowstart_ms = 0;
    health.reconfigure(7, other);
    assert_eq!(health.operational(), Operational::Running);
    health.check_invariants();
}

#[test]
fn what_ended_a_configured_maintenance_holds_for_the_heir() {
    let admin_of_heir = |server: &Health, disabled| {
        let mut successor = Health::new(*server.settings(), disabled, 9);
        successor.restore(&server.snapshot(9), 9);
        successor.check_invariants();
        assert_eq!(successor.balance().usable, !successor.admin().is_maint());
        successor.admin().bits()
    };
    let mut server = Health::new(HealthSettings::default(), true, 0);
    assert_eq!(admin_of_heir(&server, true), 0x05);
    server.set_ready(1);
    assert_eq!(admin_of_heir(&server, true), 0x04);
    assert_eq!(admin_of_heir(&server, false), 0x00);
    server.set_maint(2);
    assert_eq!(admin_of_heir(&server, true), 0x05);
    // A changed line, as after a reload.
    server.set_configured_maint(3, false);
    assert_eq!(server.admin().bits(), 0x00);
    server.set_configured_maint(4, true);
    assert_eq!(server.admin().bits(), 0x05);
    server.set_ready(5);
    assert_eq!(admin_of_heir(&server, true), 0x04);
}

#[test]
fn an_heir_takes_what_was_decided_and_leaves_what_was_configured() {
    let settings = HealthSettings {
        check: Some(CheckSettings::HEALTH),
        ..HealthSettings::default()
    };
    let taken = |disabled, admin_state| {
        let mut successor = Health::new(settings, disabled, 7);
        let snapshot = Snapshot {
            admin_state,
            check_health: 4,
            check_state: 6,
            op_state: if admin_state & 0x23 == 0 { 2 } else { 0 },
            since_change_s: 600,
            weight_user: 5,
            ..Snapshot::default()
        };
        successor.restore(&snapshot, 7);
        successor.check_invariants();
        (
            successor.admin().bits(),
            successor.seconds_since_change(3_000),
        )
    };
    assert_eq!(taken(false, 0x01), (0x01, 603));
    assert_eq!(taken(false, 0x08), (0x08, 603));
    assert_eq!(taken(false, 0x7e), (0x08, 603), "told or decided anew");
    assert_eq!(taken(false, 0x05), (0x00, 603), "no longer configured");
    assert_eq!(taken(true, 0x00), (0x05, 603), "configured since");
    assert_eq!(taken(true, 0x01), (0x05, 603), "configured since");
    assert_eq!(taken(true, 0x05), (0x05, 603), "as configured");
    assert_eq!(taken(true, 0x04), (0x04, 603), "configured, and ended");
    assert_eq!(taken(true, 0x0c), (0x0c, 603), "ended, and drains");
}
