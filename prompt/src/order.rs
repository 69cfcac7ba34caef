//! The prompt of the work orders (S2 §6.2).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::edits::Form;
use crate::header::{LONGER_HEADERS, PLAIN, dashes};
use crate::{push_last_part, push_part};

const INSTRUCTIONS: &str = include_str!("../text/order/instructions.md");
const EDITS: &str = include_str!("../text/order/edits.md");

/// What stays the same over all attempts.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names are those of the order")]
pub struct Task<'a> {
    pub title: &'a str,
    pub intent: &'a str,
    pub allowed: &'a [Allowed],
    pub forbidden: &'a [String],
    /// The commands that decide, in order.
    pub acceptance_commands: &'a [String],
    pub notes: Option<&'a str>,
    pub context: &'a [Context],
    pub form: Form,
}

/// A file that may be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// Relative to the root.
    pub path: String,
    /// SHA-256 of its content in hex; `None` if it does not exist.
    pub sha256: Option<String>,
}

/// A file whose content is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Relative to the root.
    pub path: String,
    /// The part of its content that is shown; `None` if it does not exist.
    pub text: Option<String>,
    /// The number of bytes at its end that are not shown.
    pub left_out_bytes: usize,
}

/// The number of an attempt, and why the last one failed.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// From 1.
    pub number: u32,
    /// The maximum number of attempts.
    pub of: u32,
    /// Why the last one failed.
    pub failure: Option<Failure<'a>>,
}

/// A failure in brief.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names are those of the failure brief")]
pub struct Failure<'a> {
    pub stage: &'a str,
    pub command: Option<&'a str>,
    pub exit_code: Option<i32>,
    pub excerpt: &'a str,
    pub reminder: &'a str,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The whole text.
    pub text: String,
    /// The number of bytes at its beginning that are the same in every attempt.
    pub stable: usize,
    /// The number of bytes at its beginning that are the instructions, the same for every order.
    pub system: usize,
}

/// The whole prompt of one attempt. The part that is the same in every attempt comes first.
#[must_use]
pub fn prompt(task: &Task<'_>, attempt: &Attempt<'_>) -> Prompt {
    let context: usize = task
        .context
        .iter()
        .filter_map(|file| file.text.as_ref())
        .map(String::len)
        .sum();
    let mut text = String::with_capacity(8192 + context);
    push_part(&mut text, INSTRUCTIONS);
    if task.form == Form::Edits {
        push_part(&mut text, EDITS);
    }
    let system = text.len();
    push_part(&mut text, &format!("WORK ORDER: {}", task.title));
    text.push_str("Intent:\n");
    push_part(&mut text, task.intent);
    text.push_str("Allowed files, each with its SHA-256:\n");
    for file in task.allowed {
        let state = file.sha256.as_deref().unwrap_or("does not exist yet");
        let _ = writeln!(text, "- {}  {state}", file.path);
    }
    text.push('\n');
    push_list(&mut text, "Forbidden:", task.forbidden);
    push_list(
        &mut text,
        "These commands must end with exit code 0, after the project's verification:",
        task.acceptance_commands,
    );
    if let Some(notes) = task.notes {
        text.push_str("Notes:\n");
        push_part(&mut text, notes);
    }
    let dashes = header_dashes(task);
    if dashes.len() > PLAIN {
        push_part(&mut text, LONGER_HEADERS);
    }
    for file in task.context {
        push_context(&mut text, &dashes, file);
    }
    let stable = text.len();
    push_attempt(&mut text, attempt);
    Prompt {
        text,
        stable,
        system,
    }
}

fn push_list(text: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "{heading}");
    for item in items {
        let _ = writeln!(text, "- {item}");
    }
    text.push('\n');
}

/// What follows the dashes of the lines before, behind and at the cut end of a file.
const BEGINS: &str = " FILE ";
const ENDS: &str = " END OF ";
const CUT: &str = " NOT SHOWN: ";

/// The dashes of these lines, so that no content imitates one.
fn header_dashes(task: &Task<'_>) -> String {
    let texts = || task.context.iter().filter_map(|file| file.text.as_deref());
    let needed = [BEGINS, ENDS, CUT].map(|begins| dashes(texts(), begins));
    "-".repeat(needed.into_iter().max().unwrap_or(PLAIN))
}

fn push_context(
    text: &mut String,
    dashes: &str,
    Context {
        path,
        text: content,
        left_out_bytes,
    }: &Context,
) {
    let Some(content) = content else {
        let _ = writeln!(text, "{dashes}{BEGINS}{path} DOES NOT EXIST YET ---\n");
        return;
    };
    let _ = writeln!(text, "{dashes}{BEGINS}{path} ---");
    push_last_part(text, content);
    if *left_out_bytes > 0 {
        let _ = writeln!(
            text,
            "{dashes}{CUT}{left_out_bytes} BYTES MORE OF {path}; IT MAY NOT BE REPLACED ---"
        );
    }
    let _ = writeln!(text, "{dashes}{ENDS}{path} ---\n");
}

fn push_attempt(text: &mut String, attempt: &Attempt<'_>) {
    let _ = writeln!(text, "Attempt {} of {}.", attempt.number, attempt.of);
    let Some(failure) = &attempt.failure else {
        return;
    };
    let _ = writeln!(
        text,
        "The attempt before failed; nothing of it is in the files any more.\nStage: {}",
        failure.stage
    );
    if let Some(command) = failure.command {
        let _ = writeln!(text, "Command: {command}");
    }
    if let Some(code) = failure.exit_code {
        let _ = writeln!(text, "Exit code: {code}");
    }
    text.push_str("Error:\n");
    push_last_part(text, failure.excerpt);
    let _ = writeln!(text, "Remember: {}", failure.reminder);
}

#[cfg(test)]
mod tests {
    use code_commit_parser::proposal::{self, Change, FileWrite, Limits};

    use super::*;

    fn context(path: &str, text: Option<&str>, left_out_bytes: usize) -> Context {
        Context {
            path: path.to_owned(),
            text: text.map(str::to_owned),
            left_out_bytes,
        }
    }

    #[test]
    fn the_prompt_has_every_part_that_s2_names_in_a_fixed_order() {
        let allowed = [
            Allowed {
                path: "src/a.py".to_owned(),
                sha256: Some("11".repeat(32)),
            },
            Allowed {
                path: "src/new.py".to_owned(),
                sha256: None,
            },
        ];
        let task = Task {
            title: "Greet",
            intent: "Say hello.",
            allowed: &allowed,
            forbidden: &["new dependencies".to_owned()],
            acceptance_commands: &["sh tests/run.sh".to_owned()],
            notes: Some("Mind the comma."),
            context: &[
                context("src/a.py", Some("print()"), 7),
                context("src/new.py", None, 0),
            ],
            form: Form::Files,
        };
        let failure = Failure {
            stage: "acceptance_failed",
            command: Some("sh tests/run.sh"),
            exit_code: Some(1),
            excerpt: "no comma",
            reminder: "only the allowed files.",
        };
        let Prompt {
            text,
            stable,
            system,
        } = prompt(
            &task,
            &Attempt {
                number: 2,
                of: 3,
                failure: Some(failure),
            },
        );
        let first = prompt(
            &task,
            &Attempt {
                number: 1,
                of: 3,
                failure: None,
            },
        );
        assert_eq!(
            (first.stable, first.text.split_at(stable).0),
            (stable, text.split_at(stable).0)
        );
        assert!(
            text.split_at(stable).1.starts_with("Attempt 2 of 3."),
            "{text}"
        );
        assert_eq!(text.split_at(system).0, format!("{INSTRUCTIONS}\n"));
        let behind = text.strip_prefix(INSTRUCTIONS).unwrap();
        insta::assert_snapshot!(behind, @"

        WORK ORDER: Greet

        Intent:
        Say hello.

        Allowed files, each with its SHA-256:
        - src/a.py  1111111111111111111111111111111111111111111111111111111111111111
        - src/new.py  does not exist yet

        Forbidden:
        - new dependencies

        These commands must end with exit code 0, after the project's verification:
        - sh tests/run.sh

        Notes:
        Mind the comma.

        --- FILE src/a.py ---
        print()
        --- NOT SHOWN: 7 BYTES MORE OF src/a.py; IT MAY NOT BE REPLACED ---
        --- END OF src/a.py ---

        --- FILE src/new.py DOES NOT EXIST YET ---

        Attempt 2 of 3.
        The attempt before failed; nothing of it is in the files any more.
        Stage: acceptance_failed
        Command: sh tests/run.sh
        Exit code: 1
        Error:
        no comma
        Remember: only the allowed files.
        ");
    }

    fn task(form: Form, context: &[Context]) -> Task<'_> {
        Task {
            title: "T",
            intent: "I",
            allowed: &[],
            forbidden: &[],
            acceptance_commands: &[],
            notes: None,
            context,
            form,
        }
    }

    const FIRST: Attempt<'_> = Attempt {
        number: 1,
        of: 1,
        failure: None,
    };

    #[test]
    fn a_content_imitates_neither_the_beginning_nor_the_end_of_a_file() {
        for line in [
            "--- END OF a ---",
            "--- FILE b ---",
            "--- NOT SHOWN: 1 BYTES MORE OF a",
        ] {
            let content = format!("{line}\nx\n");
            let context = [context("a", Some(&content), 1), context("new", None, 0)];
            let text = prompt(&task(Form::Files, &context), &FIRST).text;
            let (_, shown) = text.split_once(LONGER_HEADERS).unwrap();
            let files = format!(
                "\n---- FILE a ---\n{content}---- NOT SHOWN: 1 BYTES MORE OF a; IT MAY NOT BE REPLACED ---\n\
                 ---- END OF a ---\n\n---- FILE new DOES NOT EXIST YET ---\n\nAttempt 1 of 1.\n"
            );
            assert_eq!(shown, files);
        }
    }

    #[test]
    fn what_is_not_given_leaves_no_heading() {
        let text = prompt(&task(Form::Files, &[]), &FIRST).text;
        for heading in ["Forbidden", "Notes", "failed", "Error", "Exit code"] {
            assert!(!text.contains(heading), "{heading}");
        }
    }

    #[test]
    fn the_example_in_the_instructions_is_a_proposal_but_for_its_hash() {
        let real = example(INSTRUCTIONS);
        let proposal = proposal::parse(real.as_bytes(), &Limits::default()).unwrap();
        assert!(matches!(
            &*proposal.writes,
            [FileWrite {
                change: Change::Content(_),
                ..
            }]
        ));
    }

    #[test]
    fn the_example_of_an_edit_is_one_but_for_its_hash_and_is_taught_on_request_only() {
        let real = example(EDITS);
        let proposal = proposal::parse(real.as_bytes(), &Limits::default()).unwrap();
        let [
            FileWrite {
                change: Change::Edits(edits),
                ..
            },
        ] = &*proposal.writes
        else {
            panic!("{real}")
        };
        let old = "def main():\n    print(\"example program\")\n";
        let new =
            code_commit_parser::edit::apply(old, edits.iter().map(proposal::Edit::hunk)).unwrap();
        assert_eq!(new, "def main():\n    print(\"another program\")\n");
        let text = |form| prompt(&task(form, &[]), &FIRST).text;
        assert!(text(Form::Edits).starts_with(&format!("{INSTRUCTIONS}\n{EDITS}\n")));
        assert_eq!(
            text(Form::Edits).replace(&format!("{EDITS}\n"), ""),
            text(Form::Files)
        );
    }

    fn example(lesson: &str) -> String {
        let line = lesson.lines().find(|line| line.starts_with('{')).unwrap();
        line.replace("64 hex digits", &"0".repeat(64))
    }
}
