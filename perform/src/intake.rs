//! The one place where parser, guard and apply meet: it writes a reply to disk completely, or not at all.
//!
//! Invariants, in the order in which they are enforced:
//! 1. If the service cut a reply off, or it holds a key, only its messages to the user are used.
//! 2. The same holds for a reply with a single bad fence.
//! 3. Every path is judged before any is read or written; one refusal refuses the whole reply.
//! 4. An edit becomes the whole content of its file, made from the content that was judged; one hunk that does
//!    not fit refuses the whole reply.
//! 5. All writes go through the guard's capabilities, in one transaction.

mod edits;
mod nearest;
mod needed;
mod prefix;
mod proposal;
mod remarks;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_commit_apply::{Applied, ChangeSet, Lock};
use code_commit_engine::{Problem, Reply};
use code_commit_guard::{Admitted, Guard, Op, Request, Verdict};
use code_commit_llm::{Advice, Finish};
use code_commit_parser::fence::{FORM, Kind};
use code_commit_parser::partial::Openers;
use code_commit_parser::{ErrorCode, FileAction};

use self::edits::Misfits;
use self::remarks::{flagged, habits};
use crate::fault::{Fault, finished};

pub use edits::Shown;
pub use proposal::{InPrompt, Taken};

/// Where replies are applied, and by which rules.
#[derive(Debug)]
pub struct Rules {
    /// The root of the tree.
    pub root: PathBuf,
    /// Judges every path; holds the ignore rules as they were when the run began.
    pub guard: Rc<Guard>,
    /// Held during the run.
    pub lock: Rc<Lock>,
}

/// The result of a reply.
#[derive(Debug)]
pub enum Intake {
    /// On disk.
    Applied {
        /// Every file.
        applied: Applied,
        /// What the user should check.
        warnings: Vec<Problem>,
        /// The reply's messages to the user.
        said: Vec<String>,
        /// The new content of the files that it edits.
        edited: Vec<(String, String)>,
        /// Why nothing had to change, where the reply says so.
        no_change: Option<String>,
    },
    /// Nothing of it is on disk.
    Rejected {
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
        /// The problems as text for the model.
        report: String,
        /// Its messages to the user, if they could be read.
        said: Vec<String>,
        /// Files that have to be shown before they are changed, each with its content.
        shown: Vec<(String, String)>,
    },
}

/// The problems reported to the model at most; the record has them all. A reply may name any number of paths,
/// and each adds a line to the next prompt.
const MOST_TOLD: usize = 200;

/// Heading of the reasons, for the model.
const NOT_USED: &str = "The reply was not used and no file was changed, because:\n";

impl Intake {
    fn rejected(problems: Vec<Problem>, said: Vec<String>) -> Self {
        Self::rejected_showing(Vec::new(), problems, said)
    }

    /// The next prompt shows these files.
    fn rejected_showing(
        shown: Vec<(String, String)>,
        problems: Vec<Problem>,
        said: Vec<String>,
    ) -> Self {
        let mut report = NOT_USED.to_owned();
        problems
            .iter()
            .take(MOST_TOLD)
            .for_each(|problem| report.push_str(&format!("- {}\n", problem.message)));
        let more = problems.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            report.push_str(&format!("- and {more} more of this kind.\n"));
        }
        Self::Rejected {
            problems,
            report,
            said,
            shown,
        }
    }
}

impl Rules {
    /// Processes one reply of somebody who was `shown` the files. Pre-images and the list of changes go to
    /// `undo`; a reply that was already applied there is not applied again.
    pub fn take_in(&self, answer: &Reply, shown: Shown<'_>, undo: &Path) -> Result<Intake, Fault> {
        let text = &*answer.text;
        let parsed = code_commit_parser::parse(text);
        // A run was killed between the transaction's commit and its journal: the changes are on disk.
        if let Some(applied) = code_commit_apply::read_applied(undo).map_err(Fault::Undo)? {
            return applied_as(parsed.ok().as_ref(), applied, Vec::new(), undo);
        }
        // Messages to the user are shown even if the rest is refused.
        let said = match &parsed {
            Ok(reply) => said(reply),
            Err(errors) => errors
                .salvaged(text, Kind::User)
                .map(str::to_owned)
                .collect(),
        };
        if let Some(problem) = unusable(answer) {
            return Ok(Intake::rejected(vec![problem], said));
        }
        if let Shown::Prompts {
            codebase,
            need_bytes: most @ 1..,
            ..
        } = shown
            && let Some(paths) = code_commit_parser::needed(text)
        {
            return Ok(self.show_needed(&paths, codebase, most));
        }
        let reply = match parsed {
            Ok(reply) => reply,
            Err(errors) => return Ok(malformed(&errors, said)),
        };
        let slips = self.diff_prefixes(&reply);
        if !slips.is_empty() {
            return Ok(Intake::rejected(slips, said));
        }
        let admitted = match self.judge(&reply)? {
            Ok(admitted) => admitted,
            Err(refusals) => return Ok(Intake::rejected(refusals, said)),
        };
        let contents = match edits::contents(&reply, &admitted, shown) {
            Ok(contents) => contents,
            Err(Misfits { problems, shown }) => {
                return Ok(Intake::rejected_showing(shown, problems, said));
            }
        };
        let mut warnings = habits(&reply, &contents.edited, &self.root);
        warnings.extend(contents.relaxed);
        warnings.extend(
            admitted
                .iter()
                .filter_map(|path| flagged(path, &self.guard)),
        );
        let set = change_set(&reply, admitted, &contents.edited);
        let applied =
            code_commit_apply::apply(&self.lock, &self.root, set, undo).map_err(Fault::Apply)?;
        applied_as(Some(&reply), finished(applied, undo)?, warnings, undo)
    }

    /// What [`take_in`](Self::take_in) would do to the tree, without doing it; the refusals if it would do
    /// nothing.
    pub fn preview(
        &self,
        answer: &Reply,
        reply: &code_commit_parser::Reply<'_>,
        shown: Shown<'_>,
    ) -> Result<Result<Applied, Vec<Problem>>, Fault> {
        if let Some(problem) = unusable(answer) {
            return Ok(Err(vec![problem]));
        }
        let slips = self.diff_prefixes(reply);
        if !slips.is_empty() {
            return Ok(Err(slips));
        }
        let admitted = match self.judge(reply)? {
            Ok(admitted) => admitted,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let contents = match edits::contents(reply, &admitted, shown) {
            Ok(contents) => contents,
            Err(misfits) => return Ok(Err(misfits.problems)),
        };
        Ok(Ok(code_commit_apply::dry_run(&change_set(
            reply,
            admitted,
            &contents.edited,
        ))))
    }

    /// Judges all paths of the reply, in its order; gives all refusals together.
    fn judge(
        &self,
        reply: &code_commit_parser::Reply<'_>,
    ) -> Result<Result<Vec<Admitted>, Vec<Problem>>, Fault> {
        let requests: Vec<Request<'_>> = reply
            .files()
            .map(|file| {
                let op = match file.action {
                    FileAction::Write(_) | FileAction::Edit(_) => Op::Write,
                    FileAction::Delete => Op::Delete,
                };
                Request {
                    path: file.path.as_bytes(),
                    op,
                    base_sha256: None,
                }
            })
            .collect();
        let verdicts = self.guard.judge(&requests).map_err(Fault::Judge)?;
        let mut admitted = Vec::with_capacity(verdicts.len());
        let mut refusals = Vec::new();
        for verdict in verdicts {
            match verdict {
                Verdict::Admitted(path) => admitted.push(path),
                Verdict::Refused(refusal) => refusals.push(problem_of(&refusal)),
            }
        }
        Ok(if refusals.is_empty() {
            Ok(admitted)
        } else {
            Err(refusals)
        })
    }
}

fn change_set<'t>(
    reply: &code_commit_parser::Reply<'t>,
    admitted: Vec<Admitted>,
    edited: &'t [Option<String>],
) -> ChangeSet<'t> {
    let mut set = ChangeSet::new();
    for ((file, path), edited) in reply.files().zip(admitted).zip(edited) {
        match file.action {
            FileAction::Write(content) => set.write(path, content.as_bytes()),
            FileAction::Edit(_) => {
                set.write(path, edited.as_deref().unwrap_or_default().as_bytes());
            }
            FileAction::Delete => set.delete(path),
        }
    }
    set
}

pub(crate) fn problem_of(refusal: &code_commit_guard::Refusal) -> Problem {
    let path = Some(refusal.path().to_owned());
    Problem {
        path,
        ..Problem::new(refusal.code().as_str(), refusal.to_string())
    }
}

/// A warning about what the transaction left behind.
pub(crate) fn untidy(warning: &code_commit_apply::Warning) -> Problem {
    Problem::new("apply", format!("{warning}."))
}

/// What makes a reply unusable whatever its content.
fn unusable(answer: &Reply) -> Option<Problem> {
    let finish = &answer.finish;
    if finish.advice() != Advice::Use {
        let mut message = if *finish == Finish::Empty {
            "The reply contains no text.".to_owned()
        } else {
            format!("The reply ended early: {}.", finish.explain())
        };
        let begun = Openers::default()
            .read(&answer.text)
            .pop()
            .filter(|_| *finish == Finish::Truncated);
        if let Some(path) = begun {
            message +=
                &format!(" The last file that it began is `{path}`: write less in one reply.");
        }
        return Some(Problem {
            code: format!("reply-{}", finish.code()),
            path: None,
            line: None,
            message,
        });
    }
    answer.held_key.then(|| Problem {
        code: "key-in-reply".to_owned(),
        path: None,
        line: None,
        message: "The reply contains an API key. Do not write keys into files.".to_owned(),
    })
}

fn malformed(errors: &code_commit_parser::Errors, said: Vec<String>) -> Intake {
    let problems = errors
        .iter()
        .map(|error| Problem {
            code: error.code.as_str().to_owned(),
            path: None,
            line: Some(error.line),
            message: error.message(),
        })
        .collect();
    let is_prose = errors
        .iter()
        .any(|error| error.code == ErrorCode::NothingActionable);
    // A model that answers in prose has lost the conventions, which are far above in the prompt.
    let form = if is_prose {
        format!("\n{FORM}")
    } else {
        String::new()
    };
    let report = format!("{NOT_USED}{}\n{form}", errors.for_model());
    Intake::Rejected {
        problems,
        report,
        said,
        shown: Vec::new(),
    }
}

/// The result of a reply whose changes are on disk.
fn applied_as(
    reply: Option<&code_commit_parser::Reply<'_>>,
    applied: Applied,
    warnings: Vec<Problem>,
    undo: &Path,
) -> Result<Intake, Fault> {
    let edited = reply.map_or(Ok(Vec::new()), |reply| edits::made(reply, &applied, undo))?;
    let (said, no_change) = (
        reply.map(said).unwrap_or_default(),
        reply.and_then(no_change),
    );
    Ok(Intake::Applied {
        applied,
        warnings,
        said,
        edited,
        no_change,
    })
}

fn said(reply: &code_commit_parser::Reply<'_>) -> Vec<String> {
    reply.user().map(str::to_owned).collect()
}

fn no_change(reply: &code_commit_parser::Reply<'_>) -> Option<String> {
    let reasons: Vec<&str> = reply.no_change().collect();
    (!reasons.is_empty()).then(|| reasons.join("\n"))
}

#[cfg(test)]
pub(crate) mod tests;
