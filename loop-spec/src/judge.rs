//! What a turn means.

use agent::End;
use perform::Turned;

use crate::marker::{Role, SPEC_ISSUE};

/// What to make of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A person has to settle this.
    SpecIssue(String),
    /// It ended with this marker.
    Said {
        /// One of [`Role::terminal`].
        marker: &'static str,
        /// What is in it.
        content: String,
    },
    /// It ended well and did not say how it stands: the same agent may be asked once more.
    Silent(String),
    /// It ended badly; a fresh one may fare better.
    Lost(String),
    /// Nothing can be asked before this moment, in seconds since 1970.
    Quota(u64),
    /// It ended badly, and another try is of no use.
    Stop(String),
}

/// Judges a turn by how it ended and by the most cautious of its terminal markers.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "how a turn ends grows with the CLIs; `may_pass` is what knows"
)]
pub(crate) fn judge(role: Role, turned: &Turned) -> Verdict {
    let contents = |name: &str| {
        let of_name = turned.markers.iter().filter(|marker| marker.name == name);
        of_name.map(|marker| marker.content.as_str()).collect::<Vec<_>>()
    };
    let issues = contents(SPEC_ISSUE);
    if !issues.is_empty() {
        return Verdict::SpecIssue(issues.join("\n\n"));
    }
    match &turned.end {
        End::Ok => {}
        End::Quota { resets_unix: Some(when), .. } => return Verdict::Quota(*when),
        End::PermissionDenied => return Verdict::Stop(denied(turned)),
        end if end.may_pass() || *end == End::LostSession => {
            return Verdict::Lost(format!("the agent {end}"));
        }
        end => return Verdict::Stop(format!("the agent {end}")),
    }
    let said = |marker: &&'static str| {
        contents(marker).last().map(|content| Verdict::Said { marker, content: (*content).to_owned() })
    };
    let silent = || Verdict::Silent("the turn ended without a marker that says how it stands.".to_owned());
    role.terminal().iter().find_map(said).unwrap_or_else(silent)
}

fn denied(turned: &Turned) -> String {
    let tool = |denial: &agent::Denial| match &denial.argument {
        Some(argument) => format!("{} ({argument})", denial.tool),
        None => denial.tool.clone(),
    };
    let tools: Vec<String> = turned.denials.iter().map(tool).collect();
    format!("the agent {}: {}", turned.end, tools.join(", "))
}
