//! What a turn means.

use code_commit_engine::{Cause, Denial, TurnAdvice, Turned};

use crate::marker::{Role, SPEC_ISSUE};

/// The code of a turn that ended because tools were denied.
const DENIED: &str = "permission-denied";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A person has to settle this.
    SpecIssue(String),
    /// It ended with this marker.
    Said {
        /// One of [`Role::terminal`].
        marker: &'static str,
        content: String,
    },
    /// It ended badly, or without a terminal marker.
    Stop { code: String, why: String },
    /// A limit of the run is used up.
    Limit(Cause),
}

/// Judges a turn by how it ended and by the most cautious of its terminal markers.
pub(crate) fn judge(role: Role, turned: &Turned) -> Verdict {
    let contents = |name: &str| {
        let of_name = turned.markers.iter().filter(|marker| marker.name == name);
        of_name
            .map(|marker| marker.content.as_str())
            .collect::<Vec<_>>()
    };
    let issues = contents(SPEC_ISSUE);
    if !issues.is_empty() {
        return Verdict::SpecIssue(issues.join("\n\n"));
    }
    match &turned.end.then {
        TurnAdvice::Use => {}
        TurnAdvice::Limit(cause) => return Verdict::Limit(cause.clone()),
        TurnAdvice::Renew | TurnAdvice::Stop | TurnAdvice::Repeat | TurnAdvice::WaitUntil(_) => {
            let code = turned.end.how.clone();
            // Denied tools matter only if the turn ended because of them.
            let why = if code == DENIED {
                denied(turned)
            } else {
                format!("the agent {}", turned.end)
            };
            return Verdict::Stop { code, why };
        }
    }
    let said = |marker: &&'static str| {
        contents(marker).last().map(|content| Verdict::Said {
            marker,
            content: (*content).to_owned(),
        })
    };
    let silent = || Verdict::Stop {
        code: "no-marker".to_owned(),
        why: "the turn ended without a marker that says where the work stands".to_owned(),
    };
    role.terminal().iter().find_map(said).unwrap_or_else(silent)
}

fn denied(turned: &Turned) -> String {
    let tool = |denial: &Denial| match &denial.argument {
        Some(argument) => format!("{} ({argument})", denial.tool),
        None => denial.tool.clone(),
    };
    let tools: Vec<String> = turned.denials.iter().map(tool).collect();
    format!("the agent {}: {}", turned.end, tools.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::world::turned;

    #[test]
    fn tools_that_were_denied_are_named_where_they_ended_the_turn() {
        let stopped = |how| {
            let tool = |tool: &str, argument: Option<&str>| Denial {
                tool: tool.to_owned(),
                argument: argument.map(str::to_owned),
            };
            let denials = vec![tool("Bash", Some("npm publish")), tool("Fetch", None)];
            let turned = Turned {
                denials,
                ..turned(1, Role::Reviewing, how, &["APPROVED"])
            };
            let Verdict::Stop { why, .. } = judge(Role::Reviewing, &turned) else {
                panic!("{turned:?}")
            };
            why
        };
        insta::assert_snapshot!(stopped("permission-denied"), @"the agent was denied tools that it needed: Bash (npm publish), Fetch");
        insta::assert_snapshot!(stopped("bad-key"), @"the agent could not log in to its service");
    }

    #[test]
    fn a_note_or_a_finding_ends_no_turn() {
        for (role, marker) in [
            (Role::Implementing, "NOTE a"),
            (Role::Audit, "TO_BE_DISCUSSED a"),
        ] {
            let Verdict::Stop { code, .. } = judge(role, &turned(1, role, "ok", &[marker])) else {
                panic!("{marker}")
            };
            assert_eq!(code, "no-marker");
        }
    }

    #[test]
    fn of_two_markers_the_more_cautious_counts() {
        let said = |role, markers: &[&str]| judge(role, &turned(1, role, "ok", markers));
        let (marker, content) = ("REQUEST_CHANGES", "a".to_owned());
        let reviewed = said(Role::Reviewing, &["REQUEST_CHANGES a", "APPROVED b"]);
        assert_eq!(reviewed, Verdict::Said { marker, content });
        let (marker, content) = ("PROGRESS", "c".to_owned());
        let implemented = said(Role::Implementing, &["PROGRESS b", "PROGRESS c", "DONE a"]);
        assert_eq!(implemented, Verdict::Said { marker, content });
        let issues = said(
            Role::Implementing,
            &["SPEC_ISSUE b", "SPEC_ISSUE c", "DONE a"],
        );
        assert_eq!(issues, Verdict::SpecIssue("b\n\nc".to_owned()));
    }
}
