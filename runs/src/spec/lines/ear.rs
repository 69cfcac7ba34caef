//! What agents mark, kept as it comes.

use std::io;
use std::path::{Path, PathBuf};

use code_commit_agent::Event;
use code_commit_engine::{At, Marked, Named as _};
use code_commit_loop_spec::Place;
use code_commit_loop_spec::watch::WatchEvent;
use code_commit_loop_spec::{Files, Role, TBD};
use code_commit_perform::AgentWatch;
use code_commit_report::printable;
use rustix::fs::OFlags;

use super::Lines;
use crate::spec::{events, project, uuid};

/// A marker as the session file has it.
pub(crate) fn in_session(marker: &Marked) -> String {
    let Marked { name, content } = marker;
    format!("<{name}>\n{content}\n</{name}>\n\n")
}

/// Watches the agents of one run, and keeps what they mark.
#[derive(Debug)]
pub(crate) struct Ear {
    lines: Lines,
    root: PathBuf,
    /// Where an implementing agent's markers go; none in an audit.
    session: Option<At<Place>>,
}

impl Ear {
    /// For the session with these files; for an audit without.
    pub(crate) fn new(lines: Lines, root: &Path, files: Option<&Files>) -> Self {
        Self {
            lines,
            root: root.to_owned(),
            session: files.map(Files::session),
        }
    }

    /// At the end of the session file, as they are emitted (S4 §Session File).
    fn append(&self, marker: &Marked) -> io::Result<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let mut file = project::open_below(&self.root, session.place.name(), &session.file, flags)?;
        io::Write::write_all(&mut file, in_session(marker).as_bytes())
    }

    /// One without words is none.
    fn finding(&self, content: &str) -> io::Result<()> {
        if content.trim().is_empty() {
            return Ok(());
        }
        let filename = format!("{}.md", uuid::v7().map_err(io::Error::other)?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = project::open_below(&self.root, TBD, &filename, flags)?;
        io::Write::write_all(&mut file, format!("{content}\n").as_bytes())?;
        self.lines.watch(&WatchEvent::TbdItemFound {
            filename,
            content: content.to_owned(),
        });
        Ok(())
    }
}

impl AgentWatch for Ear {
    fn begins(&mut self, role: &str, _number: u32) {
        let mut screen = self.lines.screen.borrow_mut();
        screen.open.clear();
        screen.live.begin(&format!("{role} agent"));
    }

    fn sees(&mut self, role: &str, event: &Event) {
        self.lines.output.object(&events::agent(role, event));
        self.lines.event(event);
    }

    fn left_out(&mut self, _repository: &str, folder: &str) {
        let folder = printable(folder);
        self.lines.output.warn(&format!(
            "{folder} is a repository of its own: it is not committed"
        ));
    }

    fn listens_for(&self, role: &str) -> &[&'static str] {
        Role::named(role).map_or(&[], Role::markers)
    }

    fn ends_turn(&self, marker: &Marked) -> bool {
        marker.name == code_commit_loop_spec::SPEC_ISSUE
    }

    fn marked(&mut self, role: &str, marker: &Marked) -> io::Result<()> {
        self.lines.end_of_text();
        self.lines.output.object(&events::marker(role, marker));
        self.lines
            .verbose(&format!("[{}] {}", marker.name, printable(&marker.content)));
        match Role::named(role) {
            Some(Role::Implementing) => self.append(marker),
            Some(Role::Audit) => self.finding(&marker.content),
            Some(Role::Planning | Role::Reviewing) | None => Ok(()),
        }
    }
}
