//! The commit of a run: its message, what it needs, and when a person has to accept the run first.

use anyhow::anyhow;
use code_commit_engine::{Commit, CommitAnswer, Line, NotCommitted, Note, Recorded, Request as _};
use code_commit_logging::{Redactor, RunFolder};
use code_commit_perform::{Commits, Past, Record, Silent};
use code_commit_repo::Git;
use code_commit_report::printable;
use code_commit_settings::Settings;

use crate::commit::plan::Plan;
use crate::exit::Failure;
use crate::life::UNLIKE_RECORDED;
use crate::order::preflight;
use crate::records;
use crate::registry::Known;
use crate::site::Site;

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
pub(super) fn can_commit(site: &Site<'_>, plan: &Plan) -> Result<(), Failure> {
    if plan.commit.is_none() {
        return Ok(());
    }
    if let Some(what) = site.tree()?.under_way() {
        let error = anyhow!("--commit: a {what} is in progress, and git commits only all of it");
        return Err(Failure::refused(
            error,
            format!("finish the {what}, or drop `--commit`"),
        ));
    }
    let git = git(site, &plan.settings)?;
    preflight::unlocked(&git)?;
    preflight::identity(&git)
}

/// How runs of this plan are committed; `None` if they are not.
pub(super) fn commits(site: &Site<'_>, plan: &Plan) -> Result<Option<Commits>, Failure> {
    if plan.commit.is_none() {
        return Ok(None);
    }
    let (git, since) = (git(site, &plan.settings)?, plan.head.clone());
    Ok(Some(Commits {
        git,
        notes: crate::note::commit,
        since,
    }))
}

fn git(site: &Site<'_>, settings: &Settings) -> Result<Git, Failure> {
    site.trusted.under(settings).git(site.tree()?.root())
}

/// Whether a run is accepted but its commit is not made yet: git refused, or the harness was killed.
pub(crate) fn is_due(plan: &Plan, known: &Known, past: &Past) -> bool {
    let is_made = past
        .answers
        .iter()
        .any(|answered| answered.kind == Commit::KIND);
    plan.commit.is_some() && plan.accepted && !known.undone && !is_made
}

/// Commits a run that a person has accepted, after its end; `None` if it is not to be committed or has changed nothing.
/// The caller holds the lock of the tree.
pub(crate) fn accepted(
    plan: &Plan,
    folder: RunFolder,
    site: &Site<'_>,
) -> Result<Option<String>, Failure> {
    let Some((commits, message)) = commits(site, plan)?.zip(plan.commit.clone()) else {
        return Ok(None);
    };
    let name = records::name(folder.path());
    let (record, past) =
        Record::resume(folder, Silent).map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    let mut record = record.about(&site.root);
    let answer = commits
        .commit(&site.root, &mut record, &message)
        .map_err(anyhow::Error::from)?;
    if let CommitAnswer::NotCommitted(why) = &answer {
        let help = format!("commit them by hand, or try again: code-commit review {name} --accept");
        return Err(refused(why, help));
    }
    // A run that is killed between these two lines is not over: its loop finds both answers, and ends.
    let mut keep = || {
        record.answer(
            &Recorded::of(
                &Commit {
                    message: message.clone(),
                },
                &answer,
            )?,
            true,
        )?;
        if let Some((outcome, holds_for)) = past.end() {
            let (outcome, holds_for) = (outcome.clone(), holds_for.clone());
            record.note(&Note::Ended { outcome, holds_for })?;
        }
        anyhow::Ok(())
    };
    keep().map_err(Failure::no_record)?;
    Ok(if let CommitAnswer::Committed(made) = answer {
        made.commit
    } else {
        None
    })
}

/// The error if git refused to commit a run that passed.
pub(super) fn refusal(past: &Past, name: &str) -> Option<Failure> {
    let Some(Line::NotCommitted(why)) = past.answers.last().and_then(Recorded::line) else {
        return None;
    };
    Some(refused(
        &why,
        format!("commit them by hand; what happened: code-commit show {name}"),
    ))
}

fn refused(why: &NotCommitted, help: String) -> Failure {
    let error = anyhow!("{}", printable(&why.message))
        .context("the build passes and the changes are in place, but they could not be committed");
    Failure::from(error).help(help)
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
