//! A verification: what the verifier's turn says, wherever it says it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use code_commit_engine::{
    Announce, Append, At, CommitAll, Delete, Doubt, Harness, Identify, List, Read, Replace, Turn,
    Turned, Wait, WasRead,
};

use super::evidence::{failures, is_list, may_list, tests_wanted, untested, without_test};
use super::judge::{Verdict, judge, left_failures, verification};
use super::{Halt, Work};
use crate::state::Status;
use crate::{FAILED_SPECS, Phases, Place, Role, spec};

/// Why a verifier's turn does not count.
const ODD_FAILURES: &str =
    "made a `failed_specs.md` that is not a regular file of less than 16 MiB.";

/// What a verifier has written, with the tries that did not count.
#[derive(Debug, Default)]
pub(super) struct Writings {
    /// The files that this verification has created or changed.
    files: BTreeSet<String>,
    /// The answers of its turns.
    answers: Vec<Arc<str>>,
    /// The files as they were last read. One that grows has its old failures in it, too.
    read: BTreeMap<String, Arc<str>>,
}

impl Writings {
    pub(super) fn add(&mut self, role: Role, turned: &Turned) {
        if role == Role::Verifier {
            self.files.extend(turned.changed.iter().cloned());
            self.files.retain(|path| !turned.gone.contains(path));
            self.answers.push(turned.answer.share());
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

/// A text of the verifier.
struct Written {
    /// The file; `None` for an answer.
    path: Option<String>,
    whole: Arc<str>,
    /// What is new in it.
    added: Arc<str>,
}

/// Contracts of a passing verification for which no test is named.
type Untested = Vec<String>;

impl<H> Work<'_, H>
where
    H: Harness<List<Phases>> + Harness<Turn<Phases>> + Harness<CommitAll<Phases>>,
    H: Harness<Identify<Phases>> + Harness<Announce> + Harness<Doubt> + Harness<Wait>,
    H: Harness<Read<Phases>>
        + Harness<Replace<Phases>>
        + Harness<Append<Phases>>
        + Harness<Delete<Phases>>,
{
    /// Whether every contract holds.
    pub(super) fn verify(&mut self) -> Result<bool, Halt<H::Stop>> {
        self.save(Status::Verifying)?;
        self.src = self.identity(Place::Src)?;
        (self.writings.files, self.writings.answers) = (BTreeSet::new(), Vec::new());
        self.remove_failures()?;
        let (mut complaint, mut tries) = (None, 0);
        loop {
            tries += 1;
            let turned = self.turn(Role::Verifier, complaint.as_deref())?;
            match self.judged(&turned, tries < self.inputs.limits.tries)? {
                Ok(has_passed) => return Ok(has_passed),
                Err(why) => complaint = Some(why),
            }
        }
    }

    /// Whether every contract holds, or why the verifier has to try again, which it may not always.
    fn judged(
        &mut self,
        turned: &Turned,
        may_try: bool,
    ) -> Result<Result<bool, String>, Halt<H::Stop>> {
        match judge(turned, Role::Verifier) {
            Verdict::Good => {}
            Verdict::Again(why) if may_try => return Ok(Err(why)),
            Verdict::Again(why) | Verdict::Stop(why) => {
                return Err(self.stopped(Role::Verifier, turned, &why));
            }
        }
        let Some(text) = self.read_failures(turned)? else {
            if !may_try {
                return Err(self.give_up(Role::Verifier, "odd-failures", ODD_FAILURES));
            }
            self.remove_failures()?;
            return Ok(Err(ODD_FAILURES.to_owned()));
        };
        let report = crate::failed::parse(&text);
        if let Some(why) = verification(&report).filter(|_| may_try) {
            return Ok(Err(why));
        }
        match self.weigh(text, report.is_pass())? {
            Ok(has_passed) => Ok(Ok(has_passed)),
            Err(missing) if may_try => Ok(Err(tests_wanted(&missing))),
            Err(missing) => Err(self.untested(&missing)),
        }
    }

    /// What the verifier reported; empty if there is no file. `None` if nothing can be concluded: a
    /// symlink, a folder, a pipe, an endless file. An earlier try may have left it, since it did
    /// not exist before the first one.
    fn read_failures(&mut self, turned: &Turned) -> Result<Option<Arc<str>>, Halt<H::Stop>> {
        let read = Read(At::new(Place::Tests, FAILED_SPECS));
        let WasRead { text, odd, .. } = self.harness.perform(read).map_err(Halt::Stop)?;
        let is_odd = odd || (text.is_none() && left_failures(turned));
        Ok((!is_odd).then(|| text.map_or_else(|| Arc::from(""), |text| text.share())))
    }

    /// Weighs what the turn has left: failures in the wrong place count like those in the right one.
    fn weigh(
        &mut self,
        list: Arc<str>,
        is_pass: bool,
    ) -> Result<Result<bool, Untested>, Halt<H::Stop>> {
        let written = self.read_writings()?;
        if !(is_pass && self.inputs.start.earned) {
            return self.decide(list, is_pass).map(Ok);
        }
        let specs = || {
            self.specs
                .iter()
                .filter(|spec| spec.number <= self.inputs.phase)
                .map(|spec| &*spec.text)
        };
        let contracts: Vec<&str> = specs().flat_map(spec::contracts).collect();
        let known: Vec<&str> = specs()
            .chain([&*self.inputs.verifier.prompt])
            .chain(self.inputs.project.as_deref())
            .collect();
        let in_each = written.iter().map(|it| {
            (
                it,
                failures(it.path.as_deref(), &it.added, &known, &contracts),
            )
        });
        let found: Vec<(&Written, Vec<String>)> =
            in_each.filter(|(_, found)| !found.is_empty()).collect();
        if !found.is_empty() {
            return self.misplaced(&found).map(Ok);
        }
        let texts: Vec<&str> = written.iter().map(|it| &*it.whole).collect();
        let missing = untested(&contracts, &texts);
        if self.inputs.start.strict && !missing.is_empty() {
            return Ok(Err(missing));
        }
        if !missing.is_empty() {
            self.harness
                .perform(Doubt::new("untested", without_test(&missing)))
                .map_err(Halt::Stop)?;
        }
        self.decide(list, true).map(Ok)
    }

    /// What this verification has written, but for the list itself.
    fn read_writings(&mut self) -> Result<Vec<Written>, Halt<H::Stop>> {
        let answers = self.writings.answers.iter().map(Arc::clone);
        let mut written: Vec<Written> = answers
            .map(|text| Written {
                path: None,
                added: Arc::clone(&text),
                whole: text,
            })
            .collect();
        let mut files = self.writings.files.clone();
        files.retain(|path| self.inputs.start.earned && path != FAILED_SPECS && may_list(path));
        for path in files {
            let read = Read(At::new(Place::Tests, path.as_str()));
            if let Some(text) = self.harness.perform(read).map_err(Halt::Stop)?.text {
                let (whole, added) = (text.share(), self.writings.added(&path, text.share()));
                written.push(Written {
                    path: Some(path),
                    whole,
                    added,
                });
            }
        }
        Ok(written)
    }

    /// Puts failures into the place where the builder, the next run and a person look for them.
    fn misplaced(&mut self, found: &[(&Written, Vec<String>)]) -> Result<bool, Halt<H::Stop>> {
        let places = found
            .iter()
            .map(|(it, _)| it.path.as_deref().unwrap_or("its reply"));
        let places = places.collect::<Vec<_>>().join(", ");
        let said = format!(
            "the verifier listed failures in {places} instead of {FAILED_SPECS}: they count"
        );
        self.harness
            .perform(Doubt::new("misplaced-failures", said))
            .map_err(Halt::Stop)?;
        let entries: BTreeSet<&str> = found
            .iter()
            .flat_map(|(_, it)| it)
            .map(String::as_str)
            .collect();
        let entries: Vec<&str> = entries.into_iter().collect();
        let text: Arc<str> = (entries.join("\n\n") + "\n").into();
        let replace = Replace {
            at: At::new(Place::Tests, FAILED_SPECS),
            text: Arc::clone(&text),
        };
        self.harness.perform(replace).map_err(Halt::Stop)?;
        // Left as it is, the same list would be no change of the next turn.
        for path in found
            .iter()
            .filter_map(|(it, _)| it.path.as_deref())
            .filter(|path| is_list(path))
        {
            self.remove(path)?;
        }
        self.decide(text, false)
    }

    /// A report that cannot be understood is not a pass: it goes to the builder as it is.
    fn decide(&mut self, failures: Arc<str>, has_passed: bool) -> Result<bool, Halt<H::Stop>> {
        self.failures = (!has_passed).then_some(failures);
        if has_passed {
            self.remove_failures()?;
        }
        Ok(has_passed)
    }

    fn remove_failures(&mut self) -> Result<(), Halt<H::Stop>> {
        self.remove(FAILED_SPECS)
    }

    fn remove(&mut self, file: &str) -> Result<(), Halt<H::Stop>> {
        self.harness
            .perform(Delete(At::new(Place::Tests, file)))
            .map_err(Halt::Stop)
            .map(drop)
    }
}
