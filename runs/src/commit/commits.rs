//! The commit of a run: its message and what it needs.

use anyhow::anyhow;
use code_commit_engine::{Event, NotCommitted, Recorded};
use code_commit_logging::Redactor;
use code_commit_perform::{Commits, Past};
use code_commit_repo::Git;
use code_commit_report::printable;
use code_commit_settings::Settings;

use crate::commit::plan::Plan;
use crate::exit::{Exit, Failure};
use crate::order::preflight;
use crate::project::Project;

/// Longer first lines of a query are cut: git shows this many characters of a message in one line.
const MOST_CHARACTERS: usize = 72;

/// The message of a commit, without the line that names the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The first line of the query.
    OfQuery,
    /// The person's own.
    Given(String),
}

impl Message {
    /// Its text. A query is as long as it likes, so only its first line counts.
    pub(super) fn text(&self, query: &str, redactor: &Redactor) -> String {
        let text = match self {
            Self::Given(text) => text.trim().to_owned(),
            Self::OfQuery => subject(query),
        };
        redactor.redact(&text).into_owned()
    }
}

fn subject(query: &str) -> String {
    let line = query
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    if line.chars().count() <= MOST_CHARACTERS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(MOST_CHARACTERS - 1).collect();
    format!("{}…", cut.trim_end())
}

/// Refuses before anything is paid if git could not commit what the plan wants committed.
pub(super) fn can_commit(project: &Project<'_>, plan: &Plan) -> Result<(), Failure> {
    if plan.commit.is_none() {
        return Ok(());
    }
    if let Some(what) = project.tree()?.under_way() {
        let error = anyhow!("--commit: a {what} is in progress, and git commits only all of it");
        return Err(Failure::refused(
            error,
            format!("finish the {what}, or drop `--commit`"),
        ));
    }
    let git = git(project, &plan.settings)?;
    preflight::unlocked(&git)?;
    preflight::identity(&git)
}

/// How runs of this plan are committed; `None` if they are not.
pub(super) fn commits(project: &Project<'_>, plan: &Plan) -> Result<Option<Commits>, Failure> {
    if plan.commit.is_none() {
        return Ok(None);
    }
    Ok(Some(Commits {
        git: git(project, &plan.settings)?,
        since: plan.head.clone(),
    }))
}

pub(crate) fn git(project: &Project<'_>, settings: &Settings) -> Result<Git, Failure> {
    project.trusted.under(settings).git(project.tree()?.root())
}

/// The error of a run that passed, if its changes were not committed.
pub(crate) fn not_committed(why: &NotCommitted, passed: &str, name: &str) -> Failure {
    let error = anyhow!("{}", printable(&why.message)).context(format!(
        "{passed} and the changes are in place, but they could not be committed"
    ));
    let (exit, next) = match why.changed {
        Some(_) => (Exit::Failed, "run the build again and commit them by hand"),
        None => (Exit::Fault, "commit them by hand"),
    };
    Failure::new(exit, error).help(format!("{next}; what happened: code-commit show {name}"))
}

/// The error if git refused to commit a run that passed.
pub(super) fn refusal(past: &Past, name: &str) -> Option<Failure> {
    let Some(Event::NotCommitted(why)) = past.answers.last().and_then(Recorded::line) else {
        return None;
    };
    Some(not_committed(&why, "the build passes", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str) -> String {
        Message::OfQuery.text(query, &Redactor::default())
    }

    #[test]
    fn the_first_line_that_says_something_is_the_message_cut_where_git_would() {
        assert_eq!(check("\n  Add a flag.  \nAnd more.\n"), "Add a flag.");
        assert_eq!(check(&"ä".repeat(72)), "ä".repeat(72));
        assert_eq!(
            check(&format!("{} b", "ä".repeat(72))),
            format!("{}…", "ä".repeat(71))
        );
    }

    #[test]
    fn the_own_message_is_kept_but_for_keys() {
        let redactor = Redactor::new(["secret-key-0123456789".to_owned()]);
        let given = Message::Given("Title\n\nuses secret-key-0123456789\n".to_owned());
        let text = given.text("query", &redactor);
        assert!(
            text.starts_with("Title\n\nuses ") && !text.contains("secret-key"),
            "{text}"
        );
    }
}
