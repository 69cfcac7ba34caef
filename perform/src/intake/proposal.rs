//! Intake of S2's write proposals: one strict JSON object whose files must be in the state that the model
//! assumes.
//!
//! The invariants of fenced replies apply, and one more: if the content of one file is not what the proposal
//! was made for, nothing is written (S2 §2.7).

use std::path::Path;

use apply::{Applied, ApplyError, ChangeSet};
use guard::{Admitted, Code, Op, Request, Verdict};
use parser::proposal::{self, Limits, Proposal, normalized_path};

use super::remarks::{changed_content, flagged};
use super::{Rules, unusable};
use engine::{Problem, Reply, WhyRefused};

use crate::fault::Fault;
use crate::intake::problem_of;

/// The result of a proposal.
#[derive(Debug)]
pub enum Taken {
    /// On disk, all of it.
    Written {
        /// The files that it names, normalized.
        touched: Vec<String>,
        /// What became of them.
        applied: Applied,
        /// What the user should check.
        warnings: Vec<Problem>,
    },
    /// Nothing of it is on disk.
    Refused {
        /// The reason, as a code.
        why: WhyRefused,
        /// The files that it names, if they could be read.
        touched: Vec<String>,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
}

impl Rules {
    /// Processes one proposal. Pre-images and the list of changes go to `undo`. Files in `shown_in_part` may
    /// not be replaced: the model would drop what it has not seen, and the hash of the whole file cannot
    /// reveal that.
    pub fn take_in_proposal(
        &self,
        answer: &Reply,
        shown_in_part: &[String],
        undo: &Path,
    ) -> Result<Taken, Fault> {
        let refused = |why, problems| Taken::Refused { why, touched: Vec::new(), problems };
        if let Some(problem) = unusable(answer) {
            return Ok(refused(WhyRefused::Unusable, vec![problem]));
        }
        let proposal = match proposal::parse(answer.text.as_bytes(), &Limits::default()) {
            Ok(proposal) => proposal,
            Err(errors) => return Ok(refused(WhyRefused::Unusable, malformed(&errors))),
        };
        let touched: Vec<String> = proposal.writes.iter().map(|write| normalized_path(&write.path)).collect();
        let admitted = match self.judge_proposal(&proposal, &touched, shown_in_part)? {
            Ok(admitted) => admitted,
            Err((why, problems)) => return Ok(Taken::Refused { why, touched, problems }),
        };
        let mut warnings = Vec::new();
        let mut set = ChangeSet::new();
        for (write, path) in proposal.writes.iter().zip(admitted) {
            warnings.extend(changed_content(path.path(), &write.content, &self.root));
            warnings.extend(flagged(&path, &self.guard));
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

    /// Judges all files; gives all refusals together. An out-of-scope file takes precedence over a stale one.
    fn judge_proposal(
        &self,
        proposal: &Proposal<'_>,
        touched: &[String],
        shown_in_part: &[String],
    ) -> Result<Judged, Fault> {
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
        let in_part: Vec<Problem> = replaced_in_part(touched, shown_in_part).collect();
        if refusals.is_empty() && in_part.is_empty() {
            return Ok(Ok(admitted));
        }
        let stale = in_part.is_empty() && refusals.iter().all(|refusal| refusal.code() == Code::StaleBase);
        let why = if stale { WhyRefused::Stale } else { WhyRefused::OutOfScope };
        Ok(Err((why, refusals.iter().map(problem_of).chain(in_part).collect())))
    }
}

fn replaced_in_part<'t>(
    touched: &'t [String],
    shown_in_part: &[String],
) -> impl Iterator<Item = Problem> + use<'t> {
    let in_part: Vec<String> = shown_in_part.iter().map(|path| normalized_path(path)).collect();
    touched.iter().filter(move |path| in_part.contains(path)).map(|path| Problem {
        code: "shown-in-part".to_owned(),
        path: Some(path.clone()),
        line: None,
        message: format!("`{path}` was shown in part only, so it may not be replaced; leave it as it is."),
    })
}

/// Every path of a proposal admitted, or why the proposal is refused.
type Judged = Result<Vec<Admitted>, (WhyRefused, Vec<Problem>)>;

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
    let message = crate::fault::with_sources(error);
    Problem { code: "not-written".to_owned(), path: None, line: None, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::tests::rules;
    use crate::reply_of;

    #[test]
    fn a_file_that_was_shown_in_part_is_not_replaced() {
        let top = tempfile::tempdir().unwrap();
        let (rules, undo) = (rules(top.path()), top.path().join("undo"));
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let write = |path: &str, base: &str| {
            format!(r#"{{"path": "{path}", "base_sha256": "{base}", "content": "x"}}"#)
        };
        let take = |writes: &[String], in_part: &[&str]| {
            let reply = format!(r#"{{"summary": "s", "writes": [{}]}}"#, writes.join(", "));
            let in_part: Vec<String> = in_part.iter().map(|path| (*path).to_owned()).collect();
            rules.take_in_proposal(&reply_of(&reply), &in_part, &undo).unwrap()
        };
        let stale = write("b.py", "deadbeef");
        for writes in [vec![write("src/a.py", nothing)], vec![write("./src//a.py", nothing), stale]] {
            let Taken::Refused { why, problems, .. } = take(&writes, &["src/a.py", "c.py"]) else {
                panic!("written")
            };
            assert_eq!(why, WhyRefused::OutOfScope);
            let problem = problems.last().unwrap();
            assert_eq!((problem.code.as_str(), problem.path.as_deref()), ("shown-in-part", Some("src/a.py")));
            assert!(!rules.root.join("src/a.py").exists() && !undo.exists());
        }
        assert!(matches!(take(&[write("src/a.py", nothing)], &["c.py"]), Taken::Written { .. }));
    }
}
