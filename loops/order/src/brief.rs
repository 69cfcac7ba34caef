//! A failure in brief, to fit into a prompt (S2 §2.8).

use code_commit_engine::{Condition, Problem, WhyRefused};

use crate::artifacts::{CmdResult, FailureBrief, Stage};
use crate::order::WorkOrder;

/// The maximum length of an error excerpt, in characters.
const EXCERPT_CHARS: usize = 2000;
/// The maximum length of a reminder, in characters.
const REMINDER_CHARS: usize = 1000;

/// A failure without a command.
pub(crate) fn plain(stage: Stage, error: &str, order: &WorkOrder) -> FailureBrief {
    FailureBrief {
        stage,
        command: None,
        exit_code: None,
        primary_error_excerpt: head(error, EXCERPT_CHARS),
        constraints_reminder: reminder(order),
    }
}

/// A reply that was not written.
pub(crate) fn refused(why: WhyRefused, problems: &[Problem], order: &WorkOrder) -> FailureBrief {
    let stage = match why {
        WhyRefused::Unusable => Stage::LlmOutputInvalid,
        WhyRefused::OutOfScope => Stage::WriteScopeViolation,
        WhyRefused::Stale => Stage::StaleContext,
        WhyRefused::NotWritten => Stage::WriteFailed,
    };
    let messages: Vec<&str> = problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    plain(stage, &messages.join("\n"), order)
}

/// A command that failed. The end of its output is the most informative; if it printed on both
/// streams, each gets half of the excerpt.
pub(crate) fn of_command(
    stage: Stage,
    command: &str,
    result: &CmdResult,
    order: &WorkOrder,
) -> FailureBrief {
    let [out, err] = [&result.stdout_trunc, &result.stderr_trunc].map(|text| text.trim());
    let excerpt = if out.is_empty() && err.is_empty() {
        format!(
            "the command ended with exit code {} and printed nothing",
            result.exit_code
        )
    } else if out.is_empty() || err.is_empty() {
        tail(&format!("{out}{err}"), EXCERPT_CHARS)
    } else {
        const LABELS: usize = "[stdout]\n\n[stderr]\n".len();
        let room = EXCERPT_CHARS - LABELS;
        let err = tail(
            err,
            (room / 2).max(room.saturating_sub(out.chars().count())),
        );
        let out = tail(out, room - err.chars().count());
        format!("[stdout]\n{out}\n[stderr]\n{err}")
    };
    FailureBrief {
        command: Some(command.to_owned()),
        exit_code: Some(result.exit_code),
        ..plain(stage, &excerpt, order)
    }
}

/// Conditions that do not hold.
pub(crate) fn conditions(stage: Stage, failed: &[Condition], order: &WorkOrder) -> FailureBrief {
    let lines: Vec<String> = failed
        .iter()
        .map(|condition| match condition {
            Condition::FileExists(path) => format!("file_exists: {path} is not a file"),
            Condition::FileAbsent(path) => format!("file_absent: {path} is there"),
        })
        .collect();
    plain(stage, &lines.join("\n"), order)
}

fn reminder(order: &WorkOrder) -> String {
    let mut text = format!(
        "answer with one JSON object with `writes` and `summary` only; write these files only: {}; give `base_sha256` for every write, \
         as the list of allowed files has it",
        order.allowed_files.join(", ")
    );
    if !order.forbidden.is_empty() {
        text.push_str(&format!("; forbidden: {}", order.forbidden.join("; ")));
    }
    head(&text, REMINDER_CHARS)
}

fn head(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

fn tail(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    ['…']
        .into_iter()
        .chain(text.chars().skip(count + 1 - chars))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> WorkOrder {
        WorkOrder::parse(
            br#"{"id":"1","title":"t","intent":"i","allowed_files":["a"],"forbidden":["b"],"acceptance_commands":["true"],"context_files":[]}"#,
        )
        .unwrap()
    }

    fn result(out: &str, err: &str) -> CmdResult {
        CmdResult {
            command: vec!["x".to_owned()],
            exit_code: 3,
            stdout_trunc: out.to_owned(),
            stderr_trunc: err.to_owned(),
            stdout_path: String::new(),
            stderr_path: String::new(),
            duration_seconds: 0.0,
        }
    }

    #[test]
    fn an_excerpt_is_bounded_whatever_a_command_prints() {
        for (out, err) in [
            (0, 0),
            (5000, 0),
            (0, 5000),
            (5000, 5000),
            (5000, 3),
            (3, 5000),
            (1990, 1990),
        ] {
            let result = result(&"ö".repeat(out), &"x".repeat(err));
            let brief = of_command(Stage::VerifyFailed, "x", &result, &order());
            let chars = brief.primary_error_excerpt.chars().count();
            assert!(chars <= EXCERPT_CHARS, "{out} {err}: {chars}");
            assert!(
                chars >= (out + err).min(EXCERPT_CHARS),
                "{out} {err}: {chars}"
            );
        }
    }

    #[test]
    fn a_command_that_prints_nothing_still_has_an_excerpt() {
        let brief = of_command(Stage::VerifyFailed, "x", &result(" \n", ""), &order());
        assert_eq!(
            brief.primary_error_excerpt,
            "the command ended with exit code 3 and printed nothing"
        );
    }

    #[test]
    fn the_end_of_both_streams_is_kept() {
        let brief = of_command(
            Stage::AcceptanceFailed,
            "sh t",
            &result("1 failed\n", "Traceback\n"),
            &order(),
        );
        insta::assert_snapshot!(brief.primary_error_excerpt, @r"
        [stdout]
        1 failed
        [stderr]
        Traceback
        ");
        assert_eq!(
            (brief.command.as_deref(), brief.exit_code),
            (Some("sh t"), Some(3))
        );
    }

    #[test]
    fn a_reminder_is_bounded_too() {
        let mut order = order();
        order.allowed_files = (0..500).map(|n| format!("some/long/path/{n}.py")).collect();
        assert!(reminder(&order).chars().count() <= REMINDER_CHARS);
    }
}
