//! The prompts of the two roles of a build phase (S3 §Roles, in the order of its README).

use crate::{push_last_part, push_part};

/// The builder's role prompt if the project has none of its own.
pub const BUILDER: &str = include_str!("../text/phase/builder.md");
/// The verifier's role prompt if the project has none of its own.
pub const VERIFIER: &str = include_str!("../text/phase/verifier.md");

/// Placeholder for the phase's number in a role prompt.
const PHASE: &str = "<<PHASE>>";
const ITERATION: &str = "<<ITERATION>>";

/// One phase as a prompt names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub struct Phase<'a> {
    pub number: u32,
    pub title: &'a str,
    pub completed: bool,
    pub spec: &'a str,
}

/// The inputs of a turn's prompt. A role is told nothing about the other role's folder.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The role's own prompt.
    pub role: &'a str,
    /// The person's description of the project.
    pub project: Option<&'a str>,
    /// The current phase.
    pub phase: u32,
    /// Which iteration, from 1.
    pub iteration: u32,
    /// The maximum number of iterations.
    pub iterations: u32,
    /// The role's folder, as its agent sees it.
    pub workspace: &'a str,
    /// Every phase in order.
    pub phases: &'a [Phase<'a>],
    /// The commands of `abl-cmd`: names and descriptions.
    pub commands: &'a [(String, String)],
    /// The files that the role can see, one per line.
    pub map: &'a str,
    /// `failed_specs.md` of the last verification; `None` in a first build.
    pub failures: Option<&'a str>,
}

/// The builder's prompt: role, project, state, failures, history, the current spec, commands, map.
#[must_use]
pub fn builder(turn: &Turn<'_>) -> String {
    let mut text = head(turn);
    push_heading(&mut text, "Failed contracts");
    match turn.failures {
        Some(failures) => {
            text.push_str("The last verification failed. Mend these first:\n\n");
            push_part(&mut text, failures);
        }
        None if turn.iteration == 1 => {
            text.push_str("This is a first build: nothing has failed.\n\n");
        }
        None => text.push_str("Nothing has failed yet by the specs as they are now.\n\n"),
    }
    push_history(&mut text, turn);
    push_specs(
        &mut text,
        turn.phases
            .iter()
            .filter(|phase| phase.number == turn.phase),
    );
    push_end(&mut text, turn);
    text
}

/// The verifier's prompt: the same, with every spec up to the current one, because it verifies all
/// of them.
#[must_use]
pub fn verifier(turn: &Turn<'_>) -> String {
    let mut text = head(turn);
    if let Some(failures) = turn.failures {
        push_heading(&mut text, "What failed last time");
        text.push_str("The file was removed; write a new one if something fails now.\n\n");
        push_part(&mut text, failures);
    }
    push_history(&mut text, turn);
    push_specs(
        &mut text,
        turn.phases
            .iter()
            .filter(|phase| phase.number <= turn.phase),
    );
    push_end(&mut text, turn);
    text
}

fn head(turn: &Turn<'_>) -> String {
    let (phase, iteration) = (turn.phase.to_string(), turn.iteration.to_string());
    let mut text = String::new();
    push_part(
        &mut text,
        &turn
            .role
            .replace(PHASE, &phase)
            .replace(ITERATION, &iteration),
    );
    if let Some(project) = turn.project {
        push_heading(&mut text, "Project");
        push_part(&mut text, project);
    }
    let title = turn
        .phases
        .iter()
        .find(|phase| phase.number == turn.phase)
        .map_or("", |phase| phase.title);
    push_heading(&mut text, "Session state");
    text.push_str(&format!("- Phase: {phase} ({title})\n"));
    text.push_str(&format!(
        "- Iteration: {iteration} of {}\n",
        turn.iterations
    ));
    text.push_str(&format!("- Workspace: {}\n\n", turn.workspace));
    text
}

fn push_heading(text: &mut String, heading: &str) {
    text.push_str(&format!("# {heading}\n\n"));
}

fn push_history(text: &mut String, turn: &Turn<'_>) {
    push_heading(text, "Phases");
    for phase in turn.phases {
        let state = match (phase.completed, phase.number == turn.phase) {
            (true, _) => "completed",
            (false, true) => "current",
            (false, false) => "pending",
        };
        text.push_str(&format!(
            "- Phase {}: {} ({state})\n",
            phase.number, phase.title
        ));
    }
    text.push('\n');
}

fn push_specs<'a>(text: &mut String, phases: impl Iterator<Item = &'a Phase<'a>>) {
    for phase in phases {
        push_heading(text, &format!("Spec of phase {}", phase.number));
        push_part(text, phase.spec);
    }
}

fn push_end(text: &mut String, turn: &Turn<'_>) {
    push_heading(text, "Commands");
    text.push_str("- `abl-cmd get-spec N`: prints the spec of phase N\n");
    for (name, description) in turn.commands {
        text.push_str(&format!("- `abl-cmd {name}`: {description}\n"));
    }
    text.push('\n');
    push_heading(text, "Files that you can see");
    push_last_part(text, turn.map);
}

#[cfg(test)]
mod tests;
