//! Our choices compared with recorded choices of HAProxy (`oracle.rs` records them). Needs no
//! HAProxy.

#![allow(clippy::panic, reason = "tests")]

mod scenarios;

use ballast_balance::Algorithm;

#[test]
fn choices_are_those_recorded_from_haproxy() {
    let golden = scenarios::golden();
    let mut wrong = Vec::new();
    for scenario in scenarios::all() {
        if scenario.settings.algorithm == Algorithm::LeastConn {
            wrong.extend(scenario.busier(&scenario.play()));
            continue;
        }
        let ours = scenarios::digest(&scenario.play());
        match golden.get(&scenario.name) {
            None => wrong.push(format!("{}: not recorded", scenario.name)),
            Some(theirs) if *theirs != ours => {
                wrong.push(format!(
                    "{}:\n  ours   {ours:?}\n  theirs {theirs:?}",
                    scenario.name
                ));
            }
            Some(_) => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
