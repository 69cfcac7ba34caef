//! The prompts of the agents of the spec loop (S4 §Agent Architecture).

use crate::{push_last_part, push_part};

/// Placeholder for the specs folder in a system prompt.
const SPECS: &str = "{specs}";

const PLANNING: &str = include_str!("../text/spec/planning.md");
const IMPLEMENTING: &str = include_str!("../text/spec/implementing.md");
const REVIEWING: &str = include_str!("../text/spec/reviewing.md");
const AUDIT: &str = include_str!("../text/spec/audit.md");
/// The system prompt of the agent that helps a person to plan.
const PLAN: &str = include_str!("../text/spec/plan.md");

/// An agent of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Makes the plan.
    Planning,
    /// Implements one task of it.
    Implementing,
    /// Compares the result with the specs.
    Reviewing,
    /// Looks for problems that a person should see, in idle time.
    Audit,
    /// Talks with a person about specs and backlog.
    Plan,
}

/// The agent's system prompt; `specs` is the folder with the specs.
#[must_use]
pub fn system(who: Who, specs: &str) -> String {
    let text = match who {
        Who::Planning => PLANNING,
        Who::Implementing => IMPLEMENTING,
        Who::Reviewing => REVIEWING,
        Who::Audit => AUDIT,
        Who::Plan => PLAN,
    };
    text.replace(SPECS, specs)
}

/// The inputs of a turn's prompt. All paths are relative to the project's root.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turn<'a> {
    /// What the person asked for.
    pub focus: &'a str,
    /// The folder with the specs.
    pub specs: &'a str,
    /// The plan and its progress log.
    pub session: &'a str,
    /// Where the plan is to be written.
    pub plan: &'a str,
    /// Where the review is, or is to be written.
    pub review: &'a str,
    /// Whether the planning agent has to address a review.
    pub has_review: bool,
    /// The last check: how it ended, and the file with its output.
    pub check: Option<(&'a str, &'a str)>,
    /// The commit before the run began.
    pub initial_commit: Option<&'a str>,
    /// Files that this agent changed in its last turn although it may not.
    pub put_back: &'a [String],
}

/// The planning agent's prompt.
#[must_use]
pub fn planning(turn: &Turn<'_>) -> String {
    let mut text = head(turn);
    if turn.has_review {
        push(
            &mut text,
            "Review",
            &format!(
                "The last implementation was reviewed: read `{}`.",
                turn.review
            ),
        );
    }
    push_last(
        &mut text,
        "Plan file",
        &format!("Write the plan to `{}`.", turn.plan),
    );
    text
}

/// An implementing agent's prompt.
#[must_use]
pub fn implementing(turn: &Turn<'_>) -> String {
    let mut text = head(turn);
    push_check(&mut text, turn);
    push_last(
        &mut text,
        "Session file",
        &format!("The plan and the progress log are in `{}`.", turn.session),
    );
    text
}

/// The reviewing agent's prompt.
#[must_use]
pub fn reviewing(turn: &Turn<'_>) -> String {
    let mut text = head(turn);
    push_check(&mut text, turn);
    push(
        &mut text,
        "Session file",
        &format!("The plan and the progress log are in `{}`.", turn.session),
    );
    if let Some(commit) = turn.initial_commit {
        let scope = format!(
            "Focus on what has changed since commit {commit}: `git diff {commit}..HEAD` shows it, and `git status` what is not \
             committed."
        );
        push(&mut text, "Scope", &scope);
    }
    push_last(
        &mut text,
        "Review file",
        &format!(
            "If you request changes, write the review to `{}`.",
            turn.review
        ),
    );
    text
}

/// The auditing agent's prompt.
#[must_use]
pub fn audit(specs: &str) -> String {
    format!("Compare the specs in `{specs}` with the code.\n")
}

fn head(turn: &Turn<'_>) -> String {
    let mut text = String::new();
    push(&mut text, "Focus", turn.focus);
    push(
        &mut text,
        "Specs",
        &format!("They are in `{}`.", turn.specs),
    );
    if !turn.put_back.is_empty() {
        let files: String = turn
            .put_back
            .iter()
            .map(|path| format!("- {path}\n"))
            .collect();
        let told = format!(
            "The agent before you changed files that are not its to change. They were put back:\n\n{files}"
        );
        push(&mut text, "Not yours", &told);
    }
    text
}

fn push_check(text: &mut String, turn: &Turn<'_>) {
    if let Some((ended, file)) = turn.check {
        push(
            text,
            "Check",
            &format!("The check command {ended}. Its output is in `{file}`."),
        );
    }
}

fn push(text: &mut String, heading: &str, part: &str) {
    text.push_str(&format!("# {heading}\n\n"));
    push_part(text, part);
}

fn push_last(text: &mut String, heading: &str, part: &str) {
    text.push_str(&format!("# {heading}\n\n"));
    push_last_part(text, part);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Turn<'_> = Turn {
        focus: "Add feature X",
        specs: ".specs",
        session: ".cuggino/wip/ID.md",
        plan: ".cuggino/wip/ID.plan.md",
        review: ".cuggino/wip/ID.review.md",
        has_review: false,
        check: None,
        initial_commit: None,
        put_back: &[],
    };

    #[test]
    fn a_first_plan_has_no_review_to_answer() {
        insta::assert_snapshot!(planning(&TURN), @r"
        # Focus

        Add feature X

        # Specs

        They are in `.specs`.

        # Plan file

        Write the plan to `.cuggino/wip/ID.plan.md`.
        ");
        assert!(
            planning(&Turn {
                has_review: true,
                ..TURN
            })
            .contains("read `.cuggino/wip/ID.review.md`")
        );
    }

    #[test]
    fn the_reviewer_is_told_check_and_initial_commit() {
        let check = Some(("exited with 1", ".cuggino/wip/ID.check.txt"));
        insta::assert_snapshot!(reviewing(&Turn { check, initial_commit: Some("abc"), ..TURN }), @r"
        # Focus

        Add feature X

        # Specs

        They are in `.specs`.

        # Check

        The check command exited with 1. Its output is in `.cuggino/wip/ID.check.txt`.

        # Session file

        The plan and the progress log are in `.cuggino/wip/ID.md`.

        # Scope

        Focus on what has changed since commit abc: `git diff abc..HEAD` shows it, and `git status` what is not committed.

        # Review file

        If you request changes, write the review to `.cuggino/wip/ID.review.md`.
        ");
    }

    #[test]
    fn nobody_is_told_of_a_check_that_is_not_configured() {
        for text in [implementing(&TURN), reviewing(&TURN)] {
            assert!(
                !text.contains("# Check") && !text.contains("git diff"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_agent_is_told_where_the_specs_are() {
        for who in [
            Who::Planning,
            Who::Implementing,
            Who::Reviewing,
            Who::Audit,
            Who::Plan,
        ] {
            let text = system(who, "docs/specs");
            assert!(
                text.contains("docs/specs") && !text.contains(SPECS),
                "{who:?}"
            );
        }
    }

    #[test]
    fn who_talks_with_a_person_is_taught_no_markers() {
        let text = system(Who::Plan, "docs/specs");
        assert!(
            !text.contains("</") && !text.contains("SPEC_ISSUE"),
            "{text}"
        );
    }

    #[test]
    fn an_audit_is_told_where_older_findings_are() {
        let text = system(Who::Audit, SPECS);
        assert!(
            text.contains("Report nothing that was found before"),
            "{text}"
        );
        assert!(
            text.contains("`.cuggino/tbd`") && text.contains("`.cuggino/memory.md`"),
            "{text}"
        );
    }

    #[test]
    fn an_agent_hears_what_was_put_back() {
        let put_back = ["src/a.rs".to_owned()];
        assert!(
            implementing(&Turn {
                put_back: &put_back,
                ..TURN
            })
            .contains("put back:\n\n- src/a.rs\n")
        );
    }
}
