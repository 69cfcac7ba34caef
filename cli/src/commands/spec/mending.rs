//! The executor in a store that agents may have turned upside down: `git clean` takes it along.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use loop_spec::{Files, LOG, STORE};
use perform::{AgentExecutor, AgentFact, AgentFault, AgentRecord, AgentStep, Executor, Place, Turned};

use crate::commands::spec::lines::in_session;
use crate::commands::spec::project::{self, Mailboxes};
use crate::output::{Output, printable};

/// Folders are folders before each step, and the session file is there after each turn that began with it.
pub struct Mending<'m, 'a> {
    /// The project.
    pub root: &'m Path,
    /// The plan and its progress log.
    pub session: &'m Place,
    /// Where to say what an agent did to the files that are a person's; none where a wall keeps it from them.
    pub no_wall: Option<&'m Output>,
    /// What does the work.
    pub executor: &'m mut AgentExecutor<'a>,
}

impl Executor<AgentStep, AgentFact> for Mending<'_, '_> {
    type Fault = AgentFault;

    fn perform(
        &mut self,
        step: &AgentStep,
        record: &mut AgentRecord<'_, AgentFact>,
    ) -> Result<AgentFact, AgentFault> {
        project::mend_folders(self.root).map_err(|source| self.fault(source))?;
        let AgentStep::Turn { role, .. } = step else { return self.executor.perform(step, record) };
        let (before, mailboxes) = (self.read(), project::mailboxes(self.root));
        let fact = self.executor.perform(step, record)?;
        self.warn(role, &mailboxes);
        if let (Some(before), AgentFact::Turned(turned), None) = (before, &fact, self.read()) {
            self.restore(before, turned).map_err(|source| self.fault(source))?;
        }
        Ok(fact)
    }
}

impl Mending<'_, '_> {
    /// A person, or another program of theirs, may have done it meanwhile: it is said, not put back.
    fn warn(&self, role: &str, before: &Mailboxes) {
        let Some(output) = self.no_wall else { return };
        let after = project::mailboxes(self.root);
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
            output.warn(&format!(
                "{STORE}/{} changed during the turn of the {role} agent, which no wall kept from it",
                printable(name)
            ));
        }
    }

    fn path(&self) -> PathBuf {
        self.root.join(Files::path(self.session))
    }

    /// None where there is no such file, something else in its place, or no plan in it.
    fn read(&self) -> Option<String> {
        let bytes = dir::read(&self.path(), u64::MAX, dir::Links::Refused).ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| text.contains(LOG))
    }

    fn restore(&self, before: String, turned: &Turned) -> io::Result<()> {
        let text: String = [before].into_iter().chain(turned.markers.iter().map(in_session)).collect();
        project::mend_folders(self.root)?;
        project::write(&self.path(), &text)
    }

    fn fault(&self, source: io::Error) -> AgentFault {
        AgentFault::File { doing: "mend", path: self.root.join(STORE), source }
    }
}
