//! Watches agents in a store that they may turn upside down: `git clean` takes it along.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_agent::Event;
use code_commit_engine::{At, Marked};
use code_commit_loop_spec::{Files, LOG, Place, STORE};
use code_commit_perform::{AgentFault, AgentWatch};

use crate::spec::lines::{Ear, in_session};
use crate::spec::project::{self, Mailboxes};
use code_commit_report::{Output, printable};

/// Folders are folders before each request, and the session file is there after each turn that began
/// with it.
pub(super) struct Mending<'m> {
    ear: Ear,
    root: &'m Path,
    /// The plan and its progress log.
    session: At<Place>,
    /// Where to say what an agent did to the files that are a person's; none where a sandbox keeps it
    /// from them.
    no_wall: Option<&'m Output>,
    /// The session file and the mailboxes before the turn at hand.
    before: (Option<String>, Mailboxes),
}

impl<'m> Mending<'m> {
    /// For the project in `root`, whose session file is `session`.
    pub(super) fn new(
        ear: Ear,
        root: &'m Path,
        session: At<Place>,
        no_wall: Option<&'m Output>,
    ) -> Self {
        Self {
            ear,
            root,
            session,
            no_wall,
            before: (None, Mailboxes::default()),
        }
    }

    /// A person, or another program of theirs, may have done it meanwhile: it is said, not restored.
    fn warn(&self, role: &str) {
        let Some(output) = self.no_wall else { return };
        let (before, after) = (&self.before.1, project::mailboxes(self.root));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names
            .into_iter()
            .filter(|name| before.get(*name) != after.get(*name))
        {
            output.warn(&format!(
                "{STORE}/{} changed during the turn of the {role} agent, which no sandbox prevented",
                printable(name)
            ));
        }
    }

    fn path(&self) -> PathBuf {
        self.root.join(Files::path(&self.session))
    }

    /// None where there is no such file, something else in its place, or no plan in it.
    fn read(&self) -> Option<String> {
        let bytes = code_commit_dir::read(&self.path(), u64::MAX, code_commit_dir::Links::Refused)
            .ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| text.contains(LOG))
    }

    fn restore(&self, before: String, markers: &[Marked]) -> io::Result<()> {
        let text: String = [before]
            .into_iter()
            .chain(markers.iter().map(in_session))
            .collect();
        project::mend_folders(self.root)?;
        project::write(&self.path(), &text)
    }

    fn fault(&self, source: io::Error) -> AgentFault {
        AgentFault::File {
            doing: "mend",
            path: self.root.join(STORE),
            source,
        }
    }
}

impl AgentWatch for Mending<'_> {
    fn before_request(&mut self) -> Result<(), AgentFault> {
        project::mend_folders(self.root).map_err(|source| self.fault(source))
    }

    fn begins(&mut self, role: &str, number: u32) {
        self.before = (self.read(), project::mailboxes(self.root));
        self.ear.begins(role, number);
    }

    fn sees(&mut self, role: &str, event: &Event) {
        self.ear.sees(role, event);
    }

    fn left_out(&mut self, repository: &str, folder: &str) {
        self.ear.left_out(repository, folder);
    }

    fn listens_for(&self, role: &str) -> &[&'static str] {
        self.ear.listens_for(role)
    }

    fn ends_turn(&self, marker: &Marked) -> bool {
        self.ear.ends_turn(marker)
    }

    fn marked(&mut self, role: &str, marker: &Marked) -> io::Result<()> {
        self.ear.marked(role, marker)
    }

    fn ends(&mut self, role: &str, markers: &[Marked]) -> Result<(), AgentFault> {
        self.warn(role);
        match (self.before.0.take(), self.read()) {
            (Some(before), None) => self
                .restore(before, markers)
                .map_err(|source| self.fault(source)),
            _ => Ok(()),
        }
    }
}
