//! The same for S2's write proposals: one strict JSON object, whose files must be as the model believes them to be.
//!
//! The invariants are those of the fenced replies, and one more: a file whose content is not the one that the proposal was made for
//! keeps everything from being written (S2 §2.7).

use std::path::Path;

use apply::{Applied, ApplyError, ChangeSet};
use guard::{Admitted, Code, Op, Request, Verdict};
use parser::proposal::{self, Limits, Proposal};

use super::remarks::{changed_content, flagged};
use super::{Rules, unusable};
use crate::order::WhyRefused;
use crate::{Answer, Fault, Problem};

/// What came of a proposal.
#[derive(Debug)]
pub enum Taken {
    /// On disk, all of it.
    Written {
        /// The files that it names, normalized.
        touched: Vec<String>,
        /// What became of them.
        applied: Applied,
        /// What a person should look at.
        warnings: Vec<Problem>,
    },
    /// Nothing of it is on disk.
    Refused {
        /// In one word.
        why: WhyRefused,
        /// The files that it names, as far as they could be read.
        touched: Vec<String>,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
}

impl Rules {
    /// Takes in one proposal. Pre-images and the list of changes go to `undo`.
    pub fn take_in_proposal(&self, answer: &Answer, undo: &Path) -> Result<Taken, Fault> {
        let refused = |why, problems| Taken::Refused { why, touched: Vec::new(), problems };
        if let Some(problem) = unusable(answer) {
            return Ok(refused(WhyRefused::Unusable, vec![problem]));
        }
        let proposal = match proposal::parse(answer.reply.as_bytes(), &Limits::default()) {
            Ok(proposal) => proposal,
            Err(errors) => return Ok(refused(WhyRefused::Unusable, malformed(&errors))),
        };
        let touched: Vec<String> = proposal.writes.iter().map(|write| normalized_path(&write.path)).collect();
        let admitted = match self.judge_proposal(&proposal, &touched)? {
            Ok(admitted) => admitted,
            Err((why, problems)) => return Ok(Taken::Refused { why, touched, problems }),
        };
        let mut warnings = Vec::new();
        let mut set = ChangeSet::new();
        for (write, path) in proposal.writes.iter().zip(admitted) {
            warnings.extend(changed_content(path.path(), &write.content, &self.root));
            warnings.extend(flagged(&path));
            set.write(path, write.content.as_bytes());
        }
        match apply::apply(&self.lock, &self.root, set, undo) {
            Ok(applied) => Ok(Taken::Written { touched, applied, warnings }),
            Err(error) if error.leaves_tree_changed() => Err(Fault::Apply(error)),
            Err(error) => Ok(Taken::Refused {
                why: WhyRefused::NotWritten,
                touched,
                problems: vec![not_written(&error)],
            }),
        }
    }

    /// All files at once; all refusals at once. A file out of scope weighs more than a stale one.
    fn judge_proposal(&self, proposal: &Proposal<'_>, touched: &[String]) -> Result<Judged, Fault> {
        let requests: Vec<Request<'_>> = proposal
            .writes
            .iter()
            .zip(touched)
            .map(|(write, path)| Request {
                path: path.as_bytes(),
                op: Op::Write,
                base_sha256: Some(&write.base_sha256),
            })
            .collect();
        let mut admitted = Vec::with_capacity(requests.len());
        let mut refusals = Vec::new();
        for verdict in self.guard.judge(&requests).map_err(Fault::Judge)? {
            match verdict {
                Verdict::Admitted(path) => admitted.push(path),
                Verdict::Refused(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() {
            return Ok(Ok(admitted));
        }
        let stale = refusals.iter().all(|refusal| refusal.code() == Code::StaleBase);
        let why = if stale { WhyRefused::Stale } else { WhyRefused::OutOfScope };
        Ok(Err((why, refusals.iter().map(Problem::from).collect())))
    }
}

/// Every path of a proposal admitted, or why nothing of it is taken.
type Judged = Result<Vec<Admitted>, (WhyRefused, Vec<Problem>)>;

/// Without `.` components and doubled slashes, which mean nothing (S2 §6.2). `..` stays, to be refused.
pub fn normalized_path(path: &str) -> String {
    let rooted = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{rooted}{}", parts.join("/"))
}

fn malformed(errors: &parser::Errors<proposal::ProposalCode>) -> Vec<Problem> {
    let problem = |error: &parser::Diagnostic<proposal::ProposalCode>| Problem {
        code: error.code.as_str().to_owned(),
        path: None,
        line: Some(error.line),
        message: error.for_model(),
    };
    errors.iter().map(problem).collect()
}

fn not_written(error: &ApplyError) -> Problem {
    let message = crate::executor::ask::with_sources(error);
    Problem { code: "not-written".to_owned(), path: None, line: None, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_normalized_and_never_made_harmless() {
        let cases =
            [("./a.py", "a.py"), ("a//b", "a/b"), ("a/./b/", "a/b"), ("../a", "../a"), ("/etc", "/etc")];
        for (given, normal) in cases {
            assert_eq!(normalized_path(given), normal);
        }
    }
}
