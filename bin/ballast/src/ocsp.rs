//! Keeps OCSP responses fresh (`ocsp-update`): a thread that asks responders when the schedule says
//! so, begun when there is something to ask. Each question has a thread of its own, a few at a time,
//! so that a responder that stalls holds back no other.

mod fetch;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballast_log::Level;
use ballast_model::OcspUpdates;
use ballast_stats::StatsHost;
use ballast_tls::ocsp_request::{OcspRequest, issuer_of, verify_response};
use ballast_tls::ocsp_schedule::{UpdateDelays, UpdateStatus};
use ballast_tls::store::StoredCertificate;

use crate::instance::Instance;
use crate::ocsp::fetch::FetchError;
use crate::ocsp_state::{OcspQuestion, ResponsesState};
use crate::threads;

/// How many responders are asked at a time.
const FETCHES_MAX: usize = 8;
/// How often certificates are looked at again: commands bring them without another configuration.
const SCAN_PERIOD: Duration = Duration::from_secs(60);

/// The shortest time between two looks, whatever changes.
const SCAN_PAUSE: Duration = Duration::from_secs(1);

/// Begins to keep responses fresh.
pub(crate) fn begin(instance: &Arc<Instance>) {
    let process = Arc::downgrade(instance);
    instance.ocsp.set_thread_start(Box::new(move || {
        let process = process.upgrade();
        process.is_some_and(|instance| threads::start("ocsp", move || run(&instance)).is_ok())
    }));
    request_rescan(instance);
}

/// Looks at the certificates of the configuration in force again.
pub(crate) fn request_rescan(instance: &Instance) {
    let config = Arc::clone(&instance.generation().config);
    let updates = &config.global.tls.ocsp_updates;
    let has_some = !updates.disabled && served(instance).iter().any(|stored| stored.updates_ocsp());
    let mut state = instance.ocsp.lock();
    if has_some || state.has_thread {
        state.rescan_requested = true;
        instance.ocsp.wake(&mut state);
    }
}

/// Asks for the response of a certificate now (`update ssl ocsp-response`). False where nobody can be
/// asked.
pub(crate) fn ask_now(instance: &Instance, certificates: Vec<Arc<StoredCertificate>>) -> bool {
    let request = certificates
        .first()
        .and_then(|stored| OcspRequest::of(&stored.current()));
    let Some(request) = request else {
        return false;
    };
    instance.ocsp.ask(OcspQuestion {
        request,
        certificates,
        response: None,
    })
}

/// The certificates of all bind lines.
fn served(instance: &Instance) -> Vec<Arc<StoredCertificate>> {
    let config = Arc::clone(&instance.generation().config);
    let mut served = Vec::new();
    for bind in config.frontends.iter().flat_map(|one| &one.binds) {
        let list = bind.tls.as_ref().and_then(|tls| tls.context.certificates());
        for entry in list.iter().flat_map(|list| list.entries()) {
            served.push(Arc::clone(&entry.certificate));
        }
    }
    served
}

fn run(instance: &Arc<Instance>) {
    let mut scanned: Option<Instant> = None;
    let mut state = instance.ocsp.lock();
    loop {
        let period = if state.rescan_requested {
            SCAN_PAUSE
        } else {
            SCAN_PERIOD
        };
        if scanned.is_none_or(|at| at.elapsed() >= period) {
            state.rescan_requested = false;
            scanned = Some(Instant::now());
            scan(instance, &mut state);
        }
        while state.running < FETCHES_MAX
            && let Some(question) = next_question(&mut state)
        {
            begin_fetch(instance, &mut state, question);
        }
        let due = match state.schedule.next() {
            Some(next) if state.running < FETCHES_MAX => next.saturating_sub(now()).max(1),
            _ => i64::MAX,
        };
        let wait = u64::try_from(due).map_or(SCAN_PERIOD, Duration::from_secs);
        let scan_in = if state.rescan_requested {
            SCAN_PAUSE
        } else {
            SCAN_PERIOD
        };
        state = instance.ocsp.wait(state, wait.min(scan_in));
    }
}

fn next_question(state: &mut ResponsesState) -> Option<OcspQuestion> {
    if let Some(asked) = state.queued_by_command.pop_front() {
        return Some(asked);
    }
    let id = state.schedule.begin(now())?;
    state.questions.get(&id).cloned()
}

fn begin_fetch(instance: &Arc<Instance>, state: &mut ResponsesState, question: OcspQuestion) {
    let (asking, asked) = (Arc::clone(instance), question.clone());
    match threads::start("ocsp fetch", move || ask(&asking, &asked)) {
        Ok(()) => state.running += 1,
        Err(_) => end(instance, state, &question, Err(UpdateStatus::Http)),
    }
}

/// Asks one question, and serves the answer.
fn ask(instance: &Arc<Instance>, question: &OcspQuestion) {
    let began = SystemTime::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let config = Arc::clone(&instance.generation().config);
        let proxy = config.global.tls.ocsp_updates.proxy.as_deref();
        let der = fetch::fetch(&question.request, proxy)?;
        Ok(insert(instance, question, der.into())?)
    }));
    let broken = |_| Err(UpdateStatus::Refused("internal error".to_owned()).into());
    let outcome: Result<ServedResponse, FetchError> = outcome.unwrap_or_else(broken);
    let (outcome, unanswered) = match outcome {
        Ok(served) => (Ok(served), None),
        Err(error) => (Err(error.status), error.unanswered),
    };
    let mut state = instance.ocsp.lock();
    state.running -= 1;
    end(instance, &mut state, question, outcome);
    if let Some(unanswered) = unanswered {
        let line = format!("-:- [{}] {unanswered}", date(began));
        instance.log_of_process(Level::Info, &line);
    }
    instance.ocsp.wake(&mut state);
}

/// A date with milliseconds, as lines of HTTP have it.
fn date(at: SystemTime) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let local = ballast_net::local_time(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let month = usize::from(local.month.saturating_sub(1));
    format!(
        "{:02}/{}/{:04}:{:02}:{:02}:{:02}.{:03}",
        local.day,
        MONTHS.get(month).unwrap_or(&"Jan"),
        local.year,
        local.hour,
        local.minute,
        local.second,
        since.subsec_millis()
    )
}

/// An answer that is served, and until when it is valid.
struct ServedResponse {
    der: Arc<[u8]>,
    until: Option<i64>,
}

/// Judges an answer, and staples it.
fn insert(
    instance: &Instance,
    question: &OcspQuestion,
    der: Arc<[u8]>,
) -> Result<ServedResponse, UpdateStatus> {
    let config = Arc::clone(&instance.generation().config);
    let mut until = None;
    for stored in &question.certificates {
        // Whoever changes a certificate holds this lock.
        let mut state = config.global.tls.shared_store.lock();
        let current = stored.current();
        let issuer = issuer_of(&current);
        let response = verify_response(&der, current.leaf(), issuer, now());
        let response = response.map_err(UpdateStatus::Refused)?;
        until = Some(response.next_update());
        let mut parts = current.parts();
        parts.ocsp = Some(Arc::clone(&der));
        let certificate = state.store.build_certificate(parts);
        let certificate =
            certificate.map_err(|error| UpdateStatus::NotInserted(error.to_string()))?;
        stored.replace(Arc::new(certificate));
    }
    Ok(ServedResponse { der, until })
}

/// Notes how an update went, and logs it.
fn end(
    instance: &Instance,
    state: &mut ResponsesState,
    question: &OcspQuestion,
    outcome: Result<ServedResponse, UpdateStatus>,
) {
    let id = &question.request.certificate_id;
    let (status, until) = match outcome {
        Ok(served) => {
            if let Some(known) = state.questions.get_mut(id) {
                known.response = Some(served.der);
            }
            (UpdateStatus::Successful, served.until)
        }
        Err(status) => (status, None),
    };
    let delays = delays(&instance.generation().config.global.tls.ocsp_updates);
    let chance = RandomState::new().hash_one(0).to_le_bytes()[0];
    let is_taken = status == UpdateStatus::Successful;
    let told = format!("{} \"{status}\"", status.number());
    let row = state
        .schedule
        .end(id, (now(), until), status, delays, chance);
    let (failures, successes) = match row {
        Some(row) => (row.failures, row.successes),
        None => (u32::from(!is_taken), u32::from(is_taken)),
    };
    let path = question.certificates.first().map_or("", |one| one.name());
    let line = format!("<OCSP-UPDATE> {path} {told} {failures} {successes}");
    instance.log_of_process(Level::Notice, &line);
}

/// Looks at all certificates: what is to be kept fresh, and what is not any more. One that was read
/// again without its response gets the last one.
fn scan(instance: &Instance, state: &mut ResponsesState) {
    let config = Arc::clone(&instance.generation().config);
    let updates = &config.global.tls.ocsp_updates;
    let mut questions: BTreeMap<Vec<u8>, OcspQuestion> = BTreeMap::new();
    let served = if updates.disabled {
        Vec::new()
    } else {
        served(instance)
    };
    for stored in served.into_iter().filter(|stored| stored.updates_ocsp()) {
        let Some(request) = OcspRequest::of(&stored.current()) else {
            continue;
        };
        let id = request.certificate_id.clone();
        let question = questions.entry(id).or_insert_with(|| OcspQuestion {
            request,
            certificates: Vec::new(),
            response: None,
        });
        let mut known = question.certificates.iter();
        if !known.any(|known| Arc::ptr_eq(known, &stored)) {
            question.certificates.push(stored);
        }
    }
    for (id, question) in &mut questions {
        let former = state.questions.remove(id);
        question.response = former.and_then(|former| former.response);
        let has_one = |stored: &Arc<StoredCertificate>| stored.current().ocsp.is_some();
        let is_missing = !question.certificates.iter().all(has_one);
        let restored = question
            .response
            .clone()
            .filter(|_| is_missing)
            .map(|der| insert(instance, question, der).is_ok());
        let first = match is_missing && restored != Some(true) {
            true => now(),
            false => now() + i64::from(delays(updates).min),
        };
        let path = question.certificates.first().map_or("", |one| one.name());
        state.schedule.add(id, path, first);
    }
    let ids: BTreeSet<Vec<u8>> = questions.keys().cloned().collect();
    state.schedule.keep(&ids);
    state.questions = questions;
}

fn delays(updates: &OcspUpdates) -> UpdateDelays {
    let seconds = |delay: Duration| u32::try_from(delay.as_secs()).unwrap_or(u32::MAX);
    UpdateDelays {
        min: seconds(updates.delay_min),
        max: seconds(updates.delay_max),
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}
