//! Live output of a phase, for people and programs.

use code_commit_agent::Event;
use code_commit_engine::{Committed, Line, Turned};
use code_commit_perform::{AgentWatch, Observer};
use code_commit_report::{DIM, Output, phrases, printable, whole_lines};
use serde_json::json;

use crate::agents::{as_changed, worth_a_look};

#[derive(Debug)]
pub(super) struct Lines {
    output: Output,
    /// The agent's unfinished line.
    open: String,
}

impl Lines {
    /// To standard error, or as JSON to standard output.
    pub(super) fn new(output: Output) -> Self {
        Self {
            output,
            open: String::new(),
        }
    }

    fn line(&self, role: &str, text: &str) {
        let head = self.output.paint_note(DIM, &format!("[{role}]"));
        self.output.note(&format!("{head} {}", printable(text)));
    }

    fn end_of_text(&mut self, role: &str) {
        let text = std::mem::take(&mut self.open);
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .for_each(|line| self.line(role, line));
    }

    fn text(&mut self, role: &str, text: &str) {
        let lines = whole_lines(&mut self.open, text);
        lines
            .lines()
            .filter(|line| !line.trim().is_empty())
            .for_each(|line| self.line(role, line));
    }
}

impl AgentWatch for Lines {
    fn begins(&mut self, role: &str, number: u32) {
        self.open.clear();
        self.line(role, &format!("turn {number} begins"));
    }

    fn left_out(&mut self, repository: &str, folder: &str) {
        let folder = printable(folder);
        self.output.warn(&format!(
            "{folder} in {repository} is a repository of its own: it is not committed"
        ));
    }

    fn sees(&mut self, role: &str, event: &Event) {
        self.output
            .object(&json!({ "event": "agent", "role": role, "what": event }));
        if let Event::Text(text) = event {
            return self.text(role, text);
        }
        self.end_of_text(role);
        if let Event::ToolCall { name, argument, .. } = event {
            self.line(
                role,
                &format!("{name} {}", argument.as_deref().unwrap_or_default()),
            );
        }
        if let Event::ToolResult {
            ok: false, message, ..
        } = event
        {
            self.line(
                role,
                &format!(
                    "failed: {}",
                    message.as_deref().unwrap_or("the tool does not say why")
                ),
            );
        }
        if let Event::Retry { reason, .. } = event {
            self.line(role, &format!("tries again: {reason}"));
        }
    }
}

#[derive(Debug)]
pub(super) struct Facts {
    output: Output,
}

impl Facts {
    /// To standard error, or as JSON to standard output.
    pub(super) fn new(output: Output) -> Self {
        Self { output }
    }
}

impl Observer for Facts {
    fn see(&mut self, event: &code_commit_perform::Event<'_>) {
        if let code_commit_perform::Event::Warning(problem) = event {
            self.output.warn(&problem.message);
        }
        let code_commit_perform::Event::Line { line, json } = event else {
            return;
        };
        self.output
            .object(&json!({ "event": "fact", "fact": json }));
        if let Line::Turned(turned) = line {
            self.output.note(&said(turned));
            for path in &turned.put_back {
                let path = printable(path);
                self.output.warn(&format!(
                    "{path} may not be changed by the {}: it was restored",
                    turned.role
                ));
            }
            if !turned.put_back.is_empty() {
                self.output.note(&as_changed(turned.number));
            }
            worth_a_look(&turned.changed)
                .iter()
                .for_each(|warning| self.output.warn(warning));
        }
        if let Line::Announced(announced) = line
            && let Some(phases) = code_commit_loop_phase::specs_changed(&announced.event)
        {
            let phases: Vec<String> = phases.iter().map(u64::to_string).collect();
            self.output.warn(&format!(
                "the specs of phase {} changed: what was built and verified for the old ones does not count",
                phases.join(", ")
            ));
        }
        if let Line::Committed(Committed {
            repository: Some(repository),
            message: Some(message),
            ..
        }) = line
        {
            self.output
                .note(&format!("committed in {repository}: {message}"));
        }
    }
}

/// How a turn ended, how long it took and what it used.
fn said(turned: &Turned) -> String {
    let seconds = turned.elapsed_ms.div_ceil(1000);
    let each = turned.usage.iter().map(|used| used.usage.total());
    let sum = each.reduce(|sum, one| Some(sum?.saturating_add(one?)));
    let tokens: Option<u64> = sum.flatten();
    let tokens = tokens.map_or("tokens unknown".to_owned(), |count| {
        phrases::count(count, "token")
    });
    format!(
        "the {} {} ({seconds} s, {tokens})",
        turned.role,
        printable(&turned.end.to_string())
    )
}
