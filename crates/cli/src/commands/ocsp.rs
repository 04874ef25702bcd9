//! Commands that show and replace the OCSP responses that are stapled.
//!
//! Source: management manual, section 9.3, "set ssl ocsp-response", "show ssl ocsp-response",
//! "show ssl ocsp-updates" and "update ssl ocsp-response".

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_tls::certificate::CertificateError;
use ballast_tls::describe::{hexadecimal, log_time_text};
use ballast_tls::ocsp_details::{OcspDetails, certificate_id_lines};
use ballast_tls::pem::{decode_base64, encode_base64};
use ballast_tls::shared_store::StoreState;
use ballast_tls::store::StoredCertificate;
use ballast_tls::store_transaction::ocsp_id;

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::{ConfigInForce, queue_persist};
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["set", "ssl", "ocsp-response"],
        "set ssl ocsp-response <resp|payload>",
        "replace the OCSP response of a certificate",
        set,
    )
    .changing(ChangeScope::State),
    Command::new(
        &["show", "ssl", "ocsp-response"],
        "show ssl ocsp-response [[text|base64] id]",
        "list the OCSP responses, or tell about one",
        show,
    ),
    Command::new(
        &["show", "ssl", "ocsp-updates"],
        "show ssl ocsp-updates",
        "list the OCSP responses that are kept fresh, and how their last updates went",
        updates,
    ),
    Command::new(
        &["update", "ssl", "ocsp-response"],
        "update ssl ocsp-response <certfile>",
        "ask for the OCSP response of a certificate now; the log tells how it went",
        update,
    )
    .changing(ChangeScope::State),
];

/// The head of `show ssl ocsp-updates`.
const UPDATES_HEAD: &str = "OCSP Certid | Path | Next Update | Last Update | Successes | Failures | \
                            Last Update Status | Last Update Status (str)\n";

fn updates(call: &mut CommandCall<'_>) -> CommandAnswer {
    let mut text = UPDATES_HEAD.to_owned();
    if let ProcessRole::Worker(control) = &call.shared.role {
        control.ocsp_schedule(&mut |schedule| {
            for (id, row) in schedule.rows() {
                let last = row.last.map_or_else(|| "-".to_owned(), log_time_text);
                // Writing to a string does not fail.
                let _ = writeln!(
                    text,
                    "{} | {} | {} | {last} | {} | {} | {} | {}",
                    hexadecimal(id, false),
                    row.path,
                    log_time_text(row.next),
                    row.successes,
                    row.failures,
                    row.status.number(),
                    row.status
                );
            }
        });
    }
    CommandAnswer::Report(text)
}

fn update(call: &mut CommandCall<'_>) -> CommandAnswer {
    let name = call.arg(0).to_owned();
    if name.is_empty() {
        return CommandAnswer::error("'update ssl ocsp-response' expects a filename");
    }
    let refuse =
        |why: &str| CommandAnswer::error(format!("{why}\nCan't send ocsp request for {name}!"));
    let in_force = ConfigInForce::of(call);
    let state = in_force.config().global.tls.shared_store.lock();
    let all = in_force.certificates(&state);
    drop(state);
    let named: Vec<_> = all
        .into_iter()
        .filter(|stored| stored.name() == name)
        .collect();
    let Some(first) = named.first() else {
        return refuse(
            "Unknown certificate! 'update ssl ocsp-response' expects an already known certificate \
             file name.",
        );
    };
    if ocsp_id(first).is_none() && !first.updates_ocsp() {
        return refuse(
            "'update ssl ocsp-response' only works on certificates that already have a known OCSP \
             response.",
        );
    }
    match &call.shared.role {
        ProcessRole::Worker(control) if control.update_ocsp(named) => CommandAnswer::Done,
        _ => refuse("The certificate names no OCSP responder, or its issuer is not known."),
    }
}

/// The certificates with a response, by the number that OCSP gives them.
fn stapled(
    in_force: &ConfigInForce,
    state: &StoreState,
) -> BTreeMap<Vec<u8>, Vec<Arc<StoredCertificate>>> {
    let mut all: BTreeMap<Vec<u8>, Vec<Arc<StoredCertificate>>> = BTreeMap::new();
    for stored in in_force.certificates(state) {
        if let Some(id) = ocsp_id(&stored) {
            all.entry(id).or_default().push(stored);
        }
    }
    all
}

fn set(call: &mut CommandCall<'_>) -> CommandAnswer {
    let given = match call.payload.take() {
        Some(payload) => payload,
        None if call.arg(0).is_empty() => {
            return CommandAnswer::error(
                "'set ssl ocsp-response' expects response in base64 encoding.",
            );
        }
        None => call.arg(0).as_bytes().to_vec(),
    };
    let Some(der) = decode_base64(&given) else {
        return CommandAnswer::error(
            "'set ssl ocsp-response' received invalid base64 encoded response.",
        );
    };
    let response = match OcspDetails::read(&der) {
        Ok(response) => response,
        Err(why) => return CommandAnswer::error(why),
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    if let Err(why) = response.check_validity(i64::try_from(now.as_secs()).unwrap_or(i64::MAX)) {
        return CommandAnswer::error(why);
    }
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    let Some(certificates) = stapled(&in_force, &state).remove(&response.certificate_id) else {
        return CommandAnswer::error(
            "OCSP single response: Certificate ID does not match any certificate or issuer.",
        );
    };
    let der: Arc<[u8]> = der.into();
    for stored in certificates {
        if let Err(error) = staple(&mut state, &stored, &der) {
            return CommandAnswer::error(error.to_string());
        }
    }
    let id = response.certificate_id;
    let object = format!("ocsp-response {}", hexadecimal(&id, false));
    lock.record(object, move |in_force, _| {
        let mut state = in_force.config().global.tls.shared_store.lock();
        let certificates = stapled(in_force, &state).remove(&id);
        for stored in certificates.into_iter().flatten() {
            let _ = staple(&mut state, &stored, &der);
        }
    });
    drop(state);
    queue_persist(call);
    CommandAnswer::info("OCSP Response updated!")
}

/// Serves a certificate with another response.
fn staple(
    state: &mut StoreState,
    stored: &StoredCertificate,
    der: &Arc<[u8]>,
) -> Result<(), CertificateError> {
    let mut parts = stored.current().parts();
    parts.ocsp = Some(Arc::clone(der));
    let certificate = state.store.build_certificate(parts)?;
    stored.replace(Arc::new(certificate));
    Ok(())
}

fn show(call: &mut CommandCall<'_>) -> CommandAnswer {
    let in_force = ConfigInForce::of(call);
    let state = in_force.config().global.tls.shared_store.lock();
    let all = stapled(&in_force, &state);
    if call.arg(0).is_empty() {
        return list(&all);
    }
    let (is_base64, reference) = match (call.arg(0), call.arg(1)) {
        ("text" | "base64", "") => {
            return CommandAnswer::error(
                "'show ssl ocsp-response [text|base64]' expects a valid certid.",
            );
        }
        ("text", reference) => (false, reference),
        ("base64", reference) => (true, reference),
        (reference, _) => (false, reference),
    };
    let mut found = all.iter().filter(|(id, certificates)| {
        let mut names = certificates.iter().map(|stored| stored.name());
        names.any(|name| name == reference) || hexadecimal(id, false) == reference
    });
    let looks_like_id =
        reference.len() > 1 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    let response = found.next().and_then(|(_, certificates)| {
        certificates
            .first()
            .and_then(|stored| stored.current().ocsp.clone())
    });
    match response {
        None if looks_like_id => {
            CommandAnswer::error("Certificate ID or path does not match any certificate.")
        }
        None => CommandAnswer::error(
            "'show ssl ocsp-response' expects a valid certid or certificate path.",
        ),
        Some(response) if is_base64 => CommandAnswer::Report(encode_base64(response.der()) + "\n"),
        Some(response) => CommandAnswer::Report(text(response.der())),
    }
}

/// A response as text.
pub(super) fn text(der: &[u8]) -> String {
    OcspDetails::read(der).map_or_else(|why| format!("{why}\n"), |response| response.text())
}

fn list(all: &BTreeMap<Vec<u8>, Vec<Arc<StoredCertificate>>>) -> CommandAnswer {
    let mut text = String::new();
    if !all.is_empty() {
        text.push_str("# Certificate IDs\n");
    }
    for (id, certificates) in all {
        let path = certificates.first().map_or("", |stored| stored.name());
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "Certificate ID key : {}\nCertificate path : {path}\n Certificate ID:\n",
            hexadecimal(id, false)
        );
        for line in certificate_id_lines(id) {
            let _ = writeln!(text, "   {line}");
        }
    }
    CommandAnswer::Report(text)
}
