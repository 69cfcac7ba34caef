//! A verification: what the verifier's turn reports, in whatever file (S3 §Communication Channel).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use code_commit_engine::{
    Announce, Append, At, CommitAll, Delete, Harness, Identify, List, Read, Replace, Turn, Turned,
    Wait, WasRead,
};

use super::{Halt, Work};
use crate::failed::{failures, is_failure, is_list, may_list};
use crate::state::Status;
use crate::{FAILED_SPECS, Phases, Place, Role};

/// Why nothing can be concluded from a verifier's turn.
const ODD_FAILURES: &str =
    "made a `failed_specs.md` that is not a regular file of less than 16 MiB";

/// The files that a verifier has written.
#[derive(Debug, Default)]
pub(super) struct Writings {
    /// Those that this verification has created or changed, also in turns that were cut off.
    files: BTreeSet<String>,
    /// The files as they were last read. One that grows has its old failures in it, too.
    read: BTreeMap<String, Arc<str>>,
}

impl Writings {
    pub(super) fn add(&mut self, role: Role, turned: &Turned) {
        if role == Role::Verifier {
            self.files.extend(turned.changed.iter().cloned());
            self.files.retain(|path| !turned.gone.contains(path));
        }
    }

    /// What has been added to a file since it was last read.
    fn added(&mut self, path: &str, text: Arc<str>) -> Arc<str> {
        let before = self.read.insert(path.to_owned(), Arc::clone(&text));
        let added = before.and_then(|before| Some(text.strip_prefix(&*before)?.into()));
        added
            .filter(|added: &Arc<str>| !added.is_empty())
            .unwrap_or(text)
    }
}

impl<H> Work<'_, H>
where
    H: Harness<List<Phases>> + Harness<Turn<Phases>> + Harness<CommitAll<Phases>>,
    H: Harness<Identify<Phases>> + Harness<Announce> + Harness<Wait>,
    H: Harness<Read<Phases>>
        + Harness<Replace<Phases>>
        + Harness<Append<Phases>>
        + Harness<Delete<Phases>>,
{
    /// Whether every contract holds.
    pub(super) fn verify(&mut self) -> Result<bool, Halt<H::Stop>> {
        self.save(Status::Verifying)?;
        self.src = self.identity(Place::Src)?;
        self.writings.files.clear();
        self.remove(FAILED_SPECS)?;
        let turned = self.turn(Role::Verifier)?;
        let list = self.read_failures(&turned)?;
        let misplaced = self.misplaced()?;
        self.failures = if is_failure(&list) {
            Some(list)
        } else if misplaced.is_empty() {
            None
        } else {
            Some(self.put_into_place(&misplaced)?)
        };
        if self.failures.is_none() {
            self.remove(FAILED_SPECS)?;
        }
        Ok(self.failures.is_none())
    }

    /// What the verifier reported; empty if there is no file. Nothing can be concluded from a symlink, a
    /// folder, a pipe, an endless file.
    fn read_failures(&mut self, turned: &Turned) -> Result<Arc<str>, Halt<H::Stop>> {
        let read = Read(At::new(Place::Tests, FAILED_SPECS));
        let WasRead { text, odd, .. } = self.harness.perform(read).map_err(Halt::Stop)?;
        if odd || (text.is_none() && left_failures(turned)) {
            return Err(self.give_up(Role::Verifier, "odd-failures", ODD_FAILURES));
        }
        Ok(text.map_or_else(|| Arc::from(""), |text| text.share()))
    }

    /// The failures in other files that this verification has written, by their paths.
    fn misplaced(&mut self) -> Result<BTreeMap<String, Vec<String>>, Halt<H::Stop>> {
        let mut files = self.writings.files.clone();
        files.retain(|path| path != FAILED_SPECS && may_list(path));
        let mut found = BTreeMap::new();
        for path in files {
            let read = Read(At::new(Place::Tests, path.as_str()));
            if let Some(text) = self.harness.perform(read).map_err(Halt::Stop)?.text {
                let added = self.writings.added(&path, text.share());
                found.insert(path.clone(), failures(&path, &added));
            }
        }
        found.retain(|_, failures| !failures.is_empty());
        Ok(found)
    }

    /// Puts failures where the builder, the next run and a person look for them.
    fn put_into_place(
        &mut self,
        found: &BTreeMap<String, Vec<String>>,
    ) -> Result<Arc<str>, Halt<H::Stop>> {
        let entries: BTreeSet<&str> = found.values().flatten().map(String::as_str).collect();
        let entries: Vec<&str> = entries.into_iter().collect();
        let text: Arc<str> = (entries.join("\n\n") + "\n").into();
        let replace = Replace {
            at: At::new(Place::Tests, FAILED_SPECS),
            text: Arc::clone(&text),
        };
        self.harness.perform(replace).map_err(Halt::Stop)?;
        // Left as it is, the same list would be no change of the next turn.
        for path in found.keys().filter(|path| is_list(path)) {
            self.remove(path)?;
        }
        Ok(text)
    }

    fn remove(&mut self, file: &str) -> Result<(), Halt<H::Stop>> {
        self.harness
            .perform(Delete(At::new(Place::Tests, file)))
            .map_err(Halt::Stop)
            .map(drop)
    }
}

/// Whether the verifier's turn created something at the path of `failed_specs.md`. It may be gone
/// if the run was killed before it was read.
fn left_failures(turned: &Turned) -> bool {
    let is_it = |path: &String| path.split('/').next() == Some(FAILED_SPECS);
    turned
        .changed
        .iter()
        .any(|path| is_it(path) && !turned.gone.contains(path))
}
