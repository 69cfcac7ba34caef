//! What is seen of agents at work: told to a person or a program, and kept in the store. The one module of the spec loop that writes to
//! the terminal. A program sees the seed's event names, one JSON object a line (S4 §Event Category System).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_commit_agent::Event as AgentEvent;
use code_commit_dir::Links;
use code_commit_engine::{
    At, CheckpointResult, Checkpointed, Event, Marked, Named as _, ShellRan, Text, Turned,
};
use code_commit_logging::RunFolder;
use code_commit_loop_spec::watch::WatchEvent;
use code_commit_loop_spec::{
    Files, ISSUES, LOG, PhaseEvent, Place, Role, SETUP, SPEC_ISSUE, STORE, TBD,
};
use code_commit_perform::{AgentFault, AgentWatch, Observer, Progress, output_text};
use code_commit_report::{
    BAD, DIM, GOOD, Output, STRONG, Style, Volume, WARN, live::LiveLine, phrases, printable,
    whole_lines,
};
use serde_json::{Value, json};

use crate::agents::{as_changed, worth_a_look};
use crate::spec::store::{Mailboxes, Store, uuid_v7};
use crate::spec::workspace::Spec;

const PLAIN: Style = Style::new();
const STARTING: &str = "Starting...";

/// Prints. Clones share one screen.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    output: Output,
    /// The folder of the specs.
    specs: String,
    /// Where the run is recorded.
    run: Option<RunFolder>,
    screen: Rc<RefCell<Screen>>,
}

#[derive(Debug)]
struct Screen {
    live: LiveLine,
    iteration: u32,
    /// Words of the agent that have not come to the end of their line.
    open: String,
}

impl Lines {
    /// On standard output; as JSON if that is asked for.
    pub(super) fn new(output: &Output, specs: &str) -> Self {
        Self {
            output: output.clone(),
            specs: specs.to_owned(),
            run: None,
            screen: Rc::new(RefCell::new(Screen {
                live: LiveLine::new(output.live && !output.json),
                iteration: 0,
                open: String::new(),
            })),
        }
    }

    /// The lines of the run in this folder.
    pub(super) fn of_run(&self, folder: &RunFolder) -> Self {
        Self {
            run: Some(folder.clone()),
            ..self.clone()
        }
    }

    fn say(&self, text: &str) {
        if self.output.volume > Volume::Quiet {
            self.screen.borrow().live.above(|| self.output.report(text));
        }
    }

    fn head(&self, head: &str, style: Style, text: &str) {
        let head = self.output.paint(STRONG, &format!("[{head}]"));
        let text = self.output.paint(style, &printable(text));
        self.say(&format!("{head} {text}"));
    }

    /// What only `--verbose` shows; nothing where there are no words.
    fn verbose(&self, style: Style, text: &str) {
        let text = printable(text);
        if self.output.volume == Volume::Verbose && !text.trim().is_empty() {
            self.say(&self.output.paint(style, text.trim_end()));
        }
    }

    /// An event of the iteration that is under way.
    fn object(&self, event: &str, mut members: Value) {
        if let Some(members) = members.as_object_mut() {
            members.insert("event".to_owned(), event.into());
            let iteration = self.screen.borrow().iteration;
            members.insert("iteration".to_owned(), iteration.into());
        }
        self.output.object(&members);
    }

    fn phase(&self, event: &PhaseEvent) {
        match event {
            PhaseEvent::IterationStart {
                iteration,
                max_iterations,
            } => {
                self.screen.borrow_mut().iteration = *iteration;
                let text = format!("=== Iteration {iteration}/{max_iterations} ===");
                self.head("Loop", PLAIN, &text);
            }
            PhaseEvent::PlanningStart { .. } => self.head("Planning", PLAIN, STARTING),
            PhaseEvent::ImplementingStart { .. } => self.head("Implementing", PLAIN, STARTING),
            PhaseEvent::ReviewingStart { .. } => self.head("Reviewing", PLAIN, STARTING),
            PhaseEvent::SpecsChanged { .. } => {
                let text = "The specs were edited: agents now use the new version";
                self.head("Loop", WARN, text);
            }
            PhaseEvent::QuotaWaitStart { until_unix, .. } => {
                let seconds = i64::try_from(*until_unix).unwrap_or(i64::MAX);
                let when = jiff::Timestamp::from_second(seconds).unwrap_or_default();
                self.head(
                    "Loop",
                    WARN,
                    &format!("Quota used up; waiting until {when}"),
                );
            }
            PhaseEvent::LoopApproved { .. } => self.head("Loop", GOOD, "Approved"),
            PhaseEvent::LoopSpecIssue { filename, .. } => {
                let text = format!("Spec issue: {STORE}/{ISSUES}/{filename}");
                self.head("Loop", BAD, &text);
            }
            PhaseEvent::LoopMaxIterations { iteration, .. } => {
                let count = phrases::count(u64::from(*iteration), "iteration");
                self.head("Loop", BAD, &format!("Maximum of {count} reached"));
            }
        }
    }

    fn ran(&self, ran: &ShellRan) {
        let (event, head) = if ran.name == SETUP {
            ("SetupCommandOutput", "Setup")
        } else {
            ("CheckCommandOutput", "Check")
        };
        let run = self.run.as_ref();
        let text = run.and_then(|run| output_text(run, &ran.output.stored.file).ok());
        let printed = text.as_ref().map(Text::as_str).unwrap_or_default();
        let (code, ended) = (ran.ended.exit_code(), ran.ended.to_string());
        let members = json!({ "exitCode": code, "ended": ended, "output": printed });
        self.object(event, members);
        let text = code.map_or(format!("Failed: it {ended}"), |code| {
            format!("Completed (exit {code})")
        });
        self.head(head, PLAIN, &text);
        self.verbose(PLAIN, printed);
    }

    fn checkpoint(&self, point: &Checkpointed) {
        let message = &point.message;
        match &point.checkpoint {
            CheckpointResult::Made { commit } => {
                let members = json!({ "commitHash": commit, "message": message });
                self.object("CommitPerformed", members);
                let subject = message.lines().next().unwrap_or_default();
                let short = commit.get(..7).unwrap_or(commit);
                self.head("Commit", PLAIN, &format!("{short} {subject}"));
            }
            CheckpointResult::Failed { error } => {
                self.object("CommitFailed", json!({ "message": error }));
                self.head("Commit", BAD, &format!("Failed: {error}"));
            }
            CheckpointResult::Nothing => {}
        }
    }

    fn turn_is_over(&self, turned: &Turned) {
        self.end_of_text();
        self.screen.borrow_mut().live.clear();
        let (role, paths) = (&turned.role, &turned.put_back);
        if !paths.is_empty() {
            self.object("ChangesPutBack", json!({ "role": role, "paths": paths }));
            for path in paths {
                let shown = printable(path);
                // Only who implements can be asked for a change of the specs.
                let may_ask = role == Role::Implementing.name();
                let hint = if may_ask && Path::new(path).starts_with(&self.specs) {
                    format!("; ask for it in the focus: `Update {shown}`")
                } else {
                    String::new()
                };
                self.output.warn(&format!(
                    "{shown} may not be changed by the {role} agent: it was restored{hint}"
                ));
            }
            self.output.note(&as_changed(turned.number));
        }
        let look = worth_a_look(&turned.changed);
        look.iter().for_each(|warning| self.output.warn(warning));
    }

    /// A turn begins.
    pub(super) fn turn_begins(&self, role: &str) {
        let mut screen = self.screen.borrow_mut();
        screen.open.clear();
        screen.live.begin(&format!("{role} agent"));
    }

    fn end_of_text(&self) {
        let text = std::mem::take(&mut self.screen.borrow_mut().open);
        self.verbose(PLAIN, &text);
    }

    /// What an agent does; its text in whole lines.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a sign of driver, and whatever agents will learn to say"
    )]
    pub(super) fn event(&self, role: &str, event: &AgentEvent) {
        if !matches!(event, AgentEvent::Text(_)) {
            self.end_of_text();
        }
        let object = |value: Value| self.output.object(&value);
        match event {
            AgentEvent::Text(text) => {
                object(json!({ "event": "AgentMessage", "role": role, "text": text }));
                let lines = whole_lines(&mut self.screen.borrow_mut().open, text);
                self.verbose(PLAIN, &lines);
            }
            AgentEvent::System { model, session } => object(json!({
                "event": "SystemMessage", "role": role, "model": model, "session": session,
            })),
            AgentEvent::ToolCall {
                id, name, argument, ..
            } => {
                object(json!({
                    "event": "ToolCall", "role": role, "id": id, "name": name, "argument": argument,
                }));
                let colon = argument.as_ref().map_or("", |_| ": ");
                let argument = argument.as_deref().unwrap_or_default();
                self.say(&printable(&format!("▶ {name}{colon}{argument}")));
            }
            AgentEvent::ToolResult {
                id, ok, message, ..
            } => {
                object(json!({
                    "event": "ToolResult", "role": role, "id": id, "ok": ok, "message": message,
                }));
                let (style, sign, silent) = if *ok {
                    (DIM, '✓', "")
                } else {
                    (WARN, '✗', "failed")
                };
                let text = message.as_deref().unwrap_or(silent);
                self.verbose(style, &format!("  {sign} {text}"));
            }
            AgentEvent::Retry { reason, .. } => {
                object(json!({ "event": "SystemMessage", "role": role, "message": reason }));
                self.verbose(PLAIN, &format!("the service failed: {reason}"));
            }
            AgentEvent::Note(text) => {
                object(json!({ "event": "SystemMessage", "role": role, "message": text }));
                self.verbose(PLAIN, text);
            }
            _ => object(json!({ "event": "PingEvent", "role": role })),
        }
    }

    /// What an agent marks.
    pub(super) fn marker(&self, role: &str, Marked { name, content }: &Marked) {
        self.end_of_text();
        let event = event_name(name);
        let object = json!({ "event": event, "role": role, "content": content });
        self.output.object(&object);
        self.verbose(PLAIN, &format!("[{name}] {content}"));
    }

    /// What the watch says of itself.
    pub(super) fn watch(&self, event: &WatchEvent) {
        let object = serde_json::to_value(event).unwrap_or_default();
        self.output.object(&object);
        let (head, text) = match event {
            WatchEvent::BacklogEmpty => ("Watch", "Backlog empty, waiting...".to_owned()),
            WatchEvent::ChangeDetected => {
                let text = "Change detected, waiting for it to settle...";
                ("Watch", text.to_owned())
            }
            WatchEvent::DebounceComplete => ("Watch", "Settled".to_owned()),
            WatchEvent::ProcessingItem { filename } => ("Watch", format!("Processing {filename}")),
            WatchEvent::ItemCompleted { filename } => ("Watch", format!("Completed {filename}")),
            WatchEvent::ItemRetained { filename, reason } => {
                ("Watch", format!("Kept {filename}: {reason}"))
            }
            WatchEvent::ItemParked { filename, reason } => {
                ("Watch", format!("{filename} {reason}"))
            }
            WatchEvent::SpecIssueWaiting { filenames } => {
                let count = phrases::count(filenames.len() as u64, "spec issue");
                let names = filenames.join(", ");
                ("Watch", format!("Waiting for {count}: {names}"))
            }
            WatchEvent::AuditStarted => ("Audit", STARTING.to_owned()),
            WatchEvent::AuditEnded => ("Audit", "Ended".to_owned()),
            WatchEvent::AuditInterrupted => ("Audit", "Interrupted".to_owned()),
            WatchEvent::TbdItemFound { filename, .. } => {
                ("Audit", format!("To be discussed: {TBD}/{filename}"))
            }
        };
        self.head(head, PLAIN, &text);
    }
}

impl Observer for Lines {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the seed has no events for other lines"
    )]
    fn see(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Warning(problem) => {
                let object = json!({ "event": "warning", "problem": problem });
                self.output.object(&object);
                self.output.warn(&problem.message);
            }
            Progress::Recorded { line, .. } => match line {
                Event::Announced(announced) => {
                    self.output.object(&announced.event);
                    let event = PhaseEvent::of_json(&announced.event);
                    event.iter().for_each(|event| self.phase(event));
                }
                Event::ShellRan(ran) => self.ran(ran),
                Event::Checkpointed(point) => self.checkpoint(point),
                Event::Turned(turned) => self.turn_is_over(turned),
                _ => {}
            },
            _ => {}
        }
    }
}

/// Watches the agents of a run: keeps what they mark as it comes, in a store that they may turn upside down, since `git clean` takes it
/// along.
pub(super) struct Watcher<'w> {
    spec: &'w Spec<'w>,
    /// The plan and its progress log; none in an audit.
    session: Option<At<Place>>,
    /// The session file before the turn at hand.
    session_before: Option<String>,
    /// The files that are a person's before it.
    mailboxes_before: Mailboxes,
}

/// A marker as the session file has it.
fn in_session(Marked { name, content }: &Marked) -> String {
    format!("<{name}>\n{content}\n</{name}>\n\n")
}

impl<'w> Watcher<'w> {
    pub(super) fn new(spec: &'w Spec<'w>, session: Option<At<Place>>) -> Self {
        Self {
            spec,
            session,
            session_before: None,
            mailboxes_before: Mailboxes::default(),
        }
    }

    fn store(&self) -> &Store {
        &self.spec.workspace.store
    }

    fn output(&self) -> &Output {
        self.spec.workspace.project.host.output
    }

    /// A person, or another program of theirs, may have done it meanwhile: it is said, not restored.
    fn warn(&self, role: &str) {
        let (before, after) = (&self.mailboxes_before, self.store().mailboxes());
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            if before.get(name) != after.get(name) {
                self.output().warn(&format!(
                    "{STORE}/{} changed during the turn of the {role} agent, which no sandbox prevented",
                    printable(name)
                ));
            }
        }
    }

    fn path(&self, session: &At<Place>) -> PathBuf {
        self.store().root.join(Files::path(session))
    }

    /// None where there is no such file, something else in its place, or no plan in it.
    fn read(&self, session: &At<Place>) -> Option<String> {
        let bytes = code_commit_dir::read(&self.path(session), u64::MAX, Links::Refused);
        let bytes = bytes.ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| text.contains(LOG))
    }

    /// One without words is none.
    fn finding(&self, content: &str) -> io::Result<()> {
        if content.trim().is_empty() {
            return Ok(());
        }
        let filename = format!("{}.md", uuid_v7());
        let text = format!("{content}\n");
        self.store().append(TBD, &filename, &text)?;
        let content = content.to_owned();
        let found = WatchEvent::TbdItemFound { filename, content };
        self.spec.lines.watch(&found);
        Ok(())
    }

    fn fault(&self, source: io::Error) -> AgentFault {
        AgentFault::File {
            doing: "mend",
            path: self.store().root.join(STORE),
            source,
        }
    }
}

impl AgentWatch for Watcher<'_> {
    /// Folders are folders before each request.
    fn before_request(&mut self) -> Result<(), AgentFault> {
        let mended = self.store().mend_folders();
        mended.map_err(|source| self.fault(source))
    }

    fn begins(&mut self, role: &str, _number: u32) {
        let session = self.session.as_ref();
        self.session_before = session.and_then(|session| self.read(session));
        self.mailboxes_before = self.store().mailboxes();
        self.spec.lines.turn_begins(role);
    }

    fn sees(&mut self, role: &str, event: &AgentEvent) {
        self.spec.lines.event(role, event);
    }

    fn left_out(&mut self, _repository: &str, folder: &str) {
        self.output().warn(&format!(
            "{} is a repository of its own: it is not committed",
            printable(folder)
        ));
    }

    fn listens_for(&self, role: &str) -> &[&'static str] {
        Role::named(role).map_or(&[], Role::markers)
    }

    fn ends_turn(&self, marker: &Marked) -> bool {
        marker.name == SPEC_ISSUE
    }

    /// At the end of the session file, as they are emitted (S4 §Session File).
    fn marked(&mut self, role: &str, marker: &Marked) -> io::Result<()> {
        self.spec.lines.marker(role, marker);
        match (Role::named(role), &self.session) {
            (Some(Role::Implementing), Some(At { place, file })) => {
                self.store().append(place.name(), file, &in_session(marker))
            }
            (Some(Role::Audit), _) => self.finding(&marker.content),
            (Some(Role::Planning | Role::Implementing | Role::Reviewing) | None, _) => Ok(()),
        }
    }

    /// The session file is there after each turn that began with it.
    fn ends(&mut self, role: &str, markers: &[Marked]) -> Result<(), AgentFault> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        if !self.spec.workspace.has_wall() {
            self.warn(role);
        }
        let is_lost = self.read(session).is_none();
        let Some(before) = self.session_before.take().filter(|_| is_lost) else {
            return Ok(());
        };
        let text = before + &markers.iter().map(in_session).collect::<String>();
        let write = |()| code_commit_dir::replace(&self.path(session), text.as_bytes());
        let restored = self.store().mend_folders().and_then(write);
        restored.map_err(|source| self.fault(source))
    }
}

/// `SPEC_ISSUE` is `SpecIssue`.
fn event_name(marker: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_owned() + &rest.to_lowercase()
    };
    marker.split('_').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_have_the_names_of_the_seed() {
        let tags =
            "NOTE SPEC_ISSUE PLAN_COMPLETE PROGRESS DONE APPROVED REQUEST_CHANGES TO_BE_DISCUSSED";
        let names: Vec<String> = tags.split(' ').map(event_name).collect();
        assert_eq!(
            names.join(" "),
            "Note SpecIssue PlanComplete Progress Done Approved RequestChanges ToBeDiscussed"
        );
    }
}
