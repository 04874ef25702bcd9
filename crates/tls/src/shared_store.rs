//! The certificates and keys of the process, with what commands have done to them, and what a
//! configuration takes over of those that were in force before it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::{CertificateStore, StoreOptions, TakeOver};
use crate::store_transaction::{
    CertificateTransaction, ListEdit, TrustFile, TrustKind, TrustState,
};
use crate::tickets::TicketKeys;

/// The name of the keys of tickets that no file has: lines without `tls-ticket-keys` share them.
pub const KEYS_OF_PROCESS: &str = "";

/// The store of certificates with what commands have begun. The model holds it. Where a
/// configuration that is read again says the same of all global words, the context stays, and
/// adopts what was read ([`SharedStore::adopt`]).
#[derive(Clone, Debug, Default)]
pub struct SharedStore(Arc<SharedState>);

#[derive(Debug, Default)]
struct SharedState {
    state: Mutex<StoreState>,
    /// Held by who writes files with certificates, so that the last who writes one is the last who
    /// changes it in memory.
    disk: Mutex<()>,
    /// Another number after each change. No two contexts have the same.
    version: AtomicU64,
}

/// What a [`SharedStore`] holds.
#[derive(Debug, Default)]
pub struct StoreState {
    /// The certificates.
    pub store: CertificateStore,
    /// Names without a certificate yet (`new ssl cert`).
    pub empty: BTreeSet<String>,
    /// The change of a certificate that was begun and not committed. There is at most one.
    pub transaction: Option<CertificateTransaction>,
    /// `ca-file`s.
    pub authorities: TrustState,
    /// `crl-file`s.
    pub revocation: TrustState,
    /// What commands have done to lists and directories of certificates, in order.
    pub list_edits: Vec<ListEdit>,
    /// The keys of tickets by the file they come from, and [`KEYS_OF_PROCESS`].
    pub ticket_keys: BTreeMap<String, Arc<TicketKeys>>,
    /// What it took over of the state before it.
    pub taken: TakeOver,
}

impl StoreState {
    /// The files that it was read from. What they have is here: nobody else need keep it.
    #[must_use]
    pub fn file_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.ticket_keys.keys().cloned().collect();
        names.extend(self.authorities.files.keys().cloned());
        names.extend(self.revocation.files.keys().cloned());
        for stored in self.store.iter() {
            let files = stored.origin().files.clone();
            let all = [
                files.certificate,
                files.key,
                files.ocsp,
                files.issuer,
                files.sctl,
            ];
            names.extend(all.into_iter().flatten());
        }
        names
    }

    fn copy(&self) -> Self {
        let mut copy = Self {
            store: CertificateStore::after(&self.store, StoreOptions::default(), TakeOver::All),
            ticket_keys: self.ticket_keys.clone(),
            taken: self.taken,
            ..Self::default()
        };
        copy.authorities.files = self.authorities.files.clone();
        copy.revocation.files = self.revocation.files.clone();
        copy.begin_with_commands(self);
        copy
    }

    /// The files of a kind.
    pub fn trust(&mut self, kind: TrustKind) -> &mut TrustState {
        match kind {
            TrustKind::Authorities => &mut self.authorities,
            TrustKind::Revocation => &mut self.revocation,
        }
    }

    /// A command added a line to a list, or removed one. A line that is removed after it was added
    /// leaves nothing.
    pub fn note_list_edit(&mut self, edit: ListEdit) {
        let undoes = |other: &ListEdit| {
            other.is_added
                && !edit.is_added
                && other.list == edit.list
                && other.certificate == edit.certificate
                && other.words == edit.words
                && other.number == edit.number
        };
        match self.list_edits.iter().position(undoes) {
            Some(index) => {
                self.list_edits.remove(index);
            }
            None => self.list_edits.push(edit),
        }
    }

    /// Takes what commands have begun and brought, in place of what it has of that.
    fn take_commands(&mut self, from: &mut Self) {
        self.empty = std::mem::take(&mut from.empty);
        self.transaction = from.transaction.take();
        self.list_edits = std::mem::take(&mut from.list_edits);
        for kind in [TrustKind::Authorities, TrustKind::Revocation] {
            let begun = from.trust(kind).transaction.take();
            let files = from.trust(kind).files.iter();
            let by_command = files.filter(|(_, file)| file.of_file.is_none());
            let by_command: Vec<_> = by_command
                .map(|(name, file)| (name.clone(), file.clone()))
                .collect();
            let own = self.trust(kind);
            own.transaction = begun;
            for (name, file) in by_command {
                own.files.entry(name).or_insert(file);
            }
        }
        let stored = from.store.iter();
        for stored in stored.filter(|one| one.origin().files_digest.is_none()) {
            if self.store.get(stored.name()).is_none() {
                self.store.insert(Arc::clone(stored));
            }
        }
    }

    /// Adds what only the other state has: files that were read for the first time.
    fn add_new(&mut self, other: Self) {
        for (name, keys) in other.ticket_keys {
            self.ticket_keys.entry(name).or_insert(keys);
        }
        for (name, file) in other.authorities.files {
            self.authorities.files.entry(name).or_insert(file);
        }
        for (name, file) in other.revocation.files {
            self.revocation.files.entry(name).or_insert(file);
        }
        for stored in other.store.iter() {
            if self.store.get(stored.name()).is_none() {
                self.store.insert(Arc::clone(stored));
            }
        }
    }

    /// Begins with what commands have begun and brought in the state before.
    fn begin_with_commands(&mut self, former: &Self) {
        self.empty = former.empty.clone();
        self.transaction = former.transaction.clone();
        self.list_edits = former.list_edits.clone();
        self.authorities.begin_with_commands(&former.authorities);
        self.revocation.begin_with_commands(&former.revocation);
    }
}

/// What was in force before a configuration that is read.
#[derive(Clone, Debug, Default)]
pub struct FormerStore {
    context: SharedStore,
    take_over: TakeOver,
}

impl SharedStore {
    /// A context of what was loaded.
    #[must_use]
    pub fn new(state: StoreState) -> Self {
        Self(Arc::new(SharedState {
            state: Mutex::new(state),
            disk: Mutex::default(),
            version: AtomicU64::new(next_version()),
        }))
    }

    /// What a configuration that is read now takes over of this one.
    #[must_use]
    pub fn former(&self, take_over: TakeOver) -> FormerStore {
        FormerStore {
            context: self.clone(),
            take_over,
        }
    }

    /// What an edit by command takes over: all that is in memory.
    #[must_use]
    pub fn in_memory(&self) -> FormerStore {
        self.former(TakeOver::All)
    }

    /// Has what was read with a configuration that is put in force: of other files, or of the same
    /// files with another content. `former` is the context in force until now. Answers whether what
    /// commands have begun and brought stays.
    pub fn adopt(&self, read: &Self, former: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &read.0) {
            let stays = self.lock().taken != TakeOver::ProcessKeys;
            if stays && !Arc::ptr_eq(&self.0, &former.0) {
                // The next global section comes with a context of its own.
                let mut since = std::mem::take(&mut *former.lock());
                self.lock().take_commands(&mut since);
            }
            return stays;
        }
        let mut read = std::mem::take(&mut *read.lock());
        let mut state = self.lock();
        // What commands did since it was read stays, but for a reload.
        let taken = read.taken;
        match taken {
            TakeOver::ProcessKeys => *state = read,
            TakeOver::Changes => {
                read.take_commands(&mut state);
                *state = read;
            }
            TakeOver::All => state.add_new(read),
        }
        taken != TakeOver::ProcessKeys
    }

    /// Another number after each change: tells whether the next process must be told.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// A copy of what it holds, for who takes long to look at it: the certificates themselves are
    /// shared.
    #[must_use]
    pub fn copy(&self) -> StoreState {
        self.lock().copy()
    }

    /// The right to write files with certificates. It is held while a disk is written: never by a
    /// thread that serves, and before [`Self::lock`].
    pub fn lock_files(&self) -> MutexGuard<'_, ()> {
        self.0.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds. Nobody holds the lock for longer than a command needs for one certificate;
    /// handshakes do not take it.
    pub fn lock(&self) -> StoreGuard<'_> {
        let state = self.0.state.lock();
        StoreGuard {
            state: state.unwrap_or_else(PoisonError::into_inner),
            version: &self.0.version,
        }
    }
}

/// What commands did is no difference between two configurations, and what files say is compared
/// where lines name them.
impl PartialEq for SharedStore {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SharedStore {}

/// Access to a [`StoreState`]. Who changes it gives it another version.
#[derive(Debug)]
pub struct StoreGuard<'s> {
    state: MutexGuard<'s, StoreState>,
    version: &'s AtomicU64,
}

impl StoreGuard<'_> {
    /// What the state leads to was changed: the content of a certificate, or keys of tickets.
    pub fn note_change(&self) {
        self.version.store(next_version(), Ordering::Release);
    }
}

impl Deref for StoreGuard<'_> {
    type Target = StoreState;

    fn deref(&self) -> &StoreState {
        &self.state
    }
}

impl DerefMut for StoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut StoreState {
        self.note_change();
        &mut self.state
    }
}

fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl FormerStore {
    /// What is taken over.
    #[must_use]
    pub fn take_over(&self) -> TakeOver {
        self.take_over
    }

    /// What was in force.
    pub fn lock(&self) -> StoreGuard<'_> {
        self.context.lock()
    }

    /// An empty store that follows the one that was in force.
    #[must_use]
    pub fn store(&self, options: StoreOptions) -> CertificateStore {
        CertificateStore::after(&self.lock().store, options, self.take_over)
    }

    /// What commands have done to lists that stays.
    #[must_use]
    pub fn list_edits(&self) -> Vec<ListEdit> {
        match self.take_over {
            TakeOver::ProcessKeys => Vec::new(),
            TakeOver::Changes | TakeOver::All => self.lock().list_edits.clone(),
        }
    }

    /// A file of authorities or revocation lists that need not be read.
    #[must_use]
    pub fn trust(&self, kind: TrustKind, name: &str) -> Option<TrustFile> {
        let known = self.known_trust(kind, name);
        known.filter(|_| self.take_over == TakeOver::All)
    }

    /// A file of authorities or revocation lists that was read: the former one where the file did not
    /// change, and changes by command stay.
    #[must_use]
    pub fn trust_after(&self, kind: TrustKind, name: &str, read: TrustFile) -> TrustFile {
        match self.trust_of_missing(kind, name) {
            Some(former) if former.of_file == read.of_file => former,
            _ => read,
        }
    }

    /// A file of authorities or revocation lists that is no longer there.
    #[must_use]
    pub fn trust_of_missing(&self, kind: TrustKind, name: &str) -> Option<TrustFile> {
        let keeps_changes = self.take_over == TakeOver::Changes;
        self.known_trust(kind, name).filter(|_| keeps_changes)
    }

    /// Whether a certificate, authorities or revocation lists of this name need no file: a command may
    /// have made them, and given them content.
    #[must_use]
    pub fn is_in_memory(&self, name: &str) -> bool {
        let state = self.lock();
        let has_content = |file: &TrustFile| !file.content.is_empty();
        self.take_over == TakeOver::All
            && (state.store.get(name).is_some()
                || state.authorities.files.get(name).is_some_and(has_content)
                || state.revocation.files.get(name).is_some_and(has_content))
    }

    fn known_trust(&self, kind: TrustKind, name: &str) -> Option<TrustFile> {
        let state = self.lock();
        let files = match kind {
            TrustKind::Authorities => &state.authorities.files,
            TrustKind::Revocation => &state.revocation.files,
        };
        files.get(name).cloned()
    }

    /// A state of what was loaded, with what stays of the one that was in force. Answers what a
    /// command had changed, and is what the file says now.
    #[must_use]
    pub fn state_after(&self, mut loaded: StoreState) -> (StoreState, Vec<Arc<str>>) {
        let overruled = loaded.store.end_of_load();
        loaded.taken = self.take_over;
        if self.take_over != TakeOver::ProcessKeys {
            loaded.begin_with_commands(&self.lock());
        }
        // A configuration without TLS may be followed by one with it.
        if let Some(keys) = self.ticket_keys(KEYS_OF_PROCESS) {
            let own = loaded.ticket_keys.entry(KEYS_OF_PROCESS.to_owned());
            own.or_insert(keys);
        }
        (loaded, overruled)
    }

    /// The keys of tickets of a file that need not be read, or of the process.
    #[must_use]
    pub fn ticket_keys(&self, name: &str) -> Option<Arc<TicketKeys>> {
        let stays = name == KEYS_OF_PROCESS || self.take_over == TakeOver::All;
        let state = self.lock();
        state.ticket_keys.get(name).filter(|_| stays).cloned()
    }

    /// The keys of a file that was read; `None` where there is no such file.
    ///
    /// The object stays where it has these keys, or where a command changed them and the file did
    /// not change.
    #[must_use]
    pub fn ticket_keys_after(
        &self,
        name: &str,
        read: Option<TicketKeys>,
    ) -> Option<Arc<TicketKeys>> {
        let former = self.lock().ticket_keys.get(name).cloned();
        let keeps_changes = self.take_over == TakeOver::Changes;
        match (former, read) {
            (Some(former), Some(read))
                if former.has_same_keys(&read)
                    || (keeps_changes && former.of_file() == read.of_file()) =>
            {
                former.note_of_file(read.of_file());
                Some(former)
            }
            (_, Some(read)) => Some(Arc::new(read)),
            (former, None) => former.filter(|_| keeps_changes),
        }
    }
}

#[cfg(test)]
mod tests;
