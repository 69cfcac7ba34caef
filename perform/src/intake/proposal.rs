//! Intake of S2's write proposals: one strict JSON object whose files must be in the state that the model
//! assumes.
//!
//! The invariants of fenced replies apply, and one more: if the content of one file is not what the proposal
//! was made for, nothing is written (S2 §2.7). An edit needs a file that the model was shown whole.

use std::borrow::Cow;
use std::path::Path;

use code_commit_apply::{Applied, ApplyError, ChangeSet};
use code_commit_guard::{Admitted, Code, Op, Request, Verdict};
use code_commit_parser::edit::{Hunk, Landed};
use code_commit_parser::proposal::{
    self, Change, Edit, FileWrite, Limits, Proposal, normalized_path,
};

use super::edits::{self, Quotes, Shown};
use super::remarks::{changed_content, flagged};
use super::{Rules, unusable};
use code_commit_engine::{Problem, Reply, WhyRefused};

use crate::fault::{Fault, finished, is_of_the_machine};
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

/// The files of which a prompt showed something.
#[derive(Debug, Clone, Copy)]
pub struct InPrompt<'p> {
    /// Only these may be edited.
    pub whole: &'p [String],
    /// These may not be replaced: the model would drop what it has not seen, and the hash of the whole file
    /// cannot reveal that.
    pub in_part: &'p [String],
}

impl Rules {
    /// Processes one proposal. Pre-images and the list of changes go to `undo`.
    pub fn take_in_proposal(
        &self,
        answer: &Reply,
        shown: InPrompt<'_>,
        undo: &Path,
    ) -> Result<Taken, Fault> {
        let refused = |why, problems| Taken::Refused {
            why,
            touched: Vec::new(),
            problems,
        };
        if let Some(problem) = unusable(answer) {
            return Ok(refused(WhyRefused::Unusable, vec![problem]));
        }
        let limits = Limits::default();
        let proposal = match proposal::parse(answer.text.as_bytes(), &limits) {
            Ok(proposal) => proposal,
            Err(faults) => return Ok(refused(WhyRefused::Unusable, malformed(&faults))),
        };
        let touched: Vec<String> = proposal
            .writes
            .iter()
            .map(|write| normalized_path(&write.path))
            .collect();
        let admitted = match self.judge_proposal(&proposal, &touched, shown)? {
            Ok(admitted) => admitted,
            Err((why, problems)) => {
                return Ok(Taken::Refused {
                    why,
                    touched,
                    problems,
                });
            }
        };
        let contents = match contents(&proposal, &admitted, limits) {
            Ok(contents) => contents,
            Err(problems) => {
                return Ok(Taken::Refused {
                    why: WhyRefused::Unusable,
                    touched,
                    problems,
                });
            }
        };
        let (contents, mut warnings) = contents;
        let mut set = ChangeSet::new();
        for (content, path) in contents.iter().zip(admitted) {
            warnings.extend(changed_content(path.path(), content, &self.root));
            warnings.extend(flagged(&path, &self.guard));
            set.write(path, content.as_bytes());
        }
        match code_commit_apply::apply(&self.lock, &self.root, set, undo) {
            Ok(applied) => Ok(Taken::Written {
                touched,
                applied: finished(applied, undo)?,
                warnings,
            }),
            Err(error) if error.leaves_tree_changed() || is_of_the_machine(&error) => {
                Err(Fault::Apply(error))
            }
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
        proposal: &Proposal,
        touched: &[String],
        shown: InPrompt<'_>,
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
        let unseen: Vec<Problem> = unseen(proposal, touched, shown).collect();
        if refusals.is_empty() && unseen.is_empty() {
            return Ok(Ok(admitted));
        }
        let stale = unseen.is_empty()
            && refusals
                .iter()
                .all(|refusal| refusal.code() == Code::StaleBase);
        let why = if stale {
            WhyRefused::Stale
        } else {
            WhyRefused::OutOfScope
        };
        Ok(Err((
            why,
            refusals.iter().map(problem_of).chain(unseen).collect(),
        )))
    }
}

/// New contents, in the order of the writes.
type Contents<'t> = Vec<Cow<'t, str>>;

/// The new content of each file and what had to be allowed for it, or every edit that does not fit.
fn contents<'t>(
    proposal: &'t Proposal,
    admitted: &[Admitted],
    limits: Limits,
) -> Result<(Contents<'t>, Vec<Problem>), Vec<Problem>> {
    let hunks = |write: &FileWrite| match &write.change {
        Change::Edits(edits) => edits.len(),
        Change::Content(_) => 0,
    };
    if let Some(problem) = edits::too_many(proposal.writes.iter().map(hunks).sum()) {
        return Err(vec![problem]);
    }
    let (mut contents, mut problems, mut quotes) = (Vec::new(), Vec::new(), Quotes::default());
    let mut warnings = Vec::new();
    for (write, path) in proposal.writes.iter().zip(admitted) {
        match &write.change {
            Change::Content(content) => {
                problems.extend(edits::not_a_file(path, content));
                contents.push(Cow::Borrowed(&**content));
            }
            Change::Edits(edits) => match edited(path, edits, limits, &mut quotes) {
                Ok(landed) => {
                    warnings.extend(edits::relaxed(path, &landed));
                    contents.push(Cow::Owned(landed.text));
                }
                Err(more) => problems.extend(more),
            },
        }
    }
    let total: usize = contents.iter().map(|content| content.len()).sum();
    if total > limits.total_bytes {
        let message = format!(
            "The files would have {total} bytes together after their edits, more than the {} of a proposal.",
            limits.total_bytes
        );
        problems.push(Problem::new(
            proposal::ProposalCode::ProposalTooLarge.as_str(),
            message,
        ));
    }
    if problems.is_empty() {
        Ok((contents, warnings))
    } else {
        Err(problems)
    }
}

/// The limits of a file and of all together hold however their content was given (S2 §4.2).
fn edited(
    path: &Admitted,
    edits: &[Edit],
    limits: Limits,
    quotes: &mut Quotes,
) -> Result<Landed, Vec<Problem>> {
    let hunks: Vec<Hunk<'_>> = edits.iter().map(Edit::hunk).collect();
    // Which files were shown whole, and as they are, is known already.
    let landed = edits::content(path, &hunks, Shown::Tree, quotes)?;
    if landed.text.len() > limits.file_bytes {
        let message = format!(
            "`{}` would have {} bytes after its edits, more than the {} of a file.",
            path.path(),
            landed.text.len(),
            limits.file_bytes
        );
        return Err(vec![problem(
            proposal::ProposalCode::FileTooLarge.as_str(),
            path.path(),
            message,
        )]);
    }
    Ok(landed)
}

/// Changes of files that the model has not seen as it needs to for such a change.
fn unseen(
    proposal: &Proposal,
    touched: &[String],
    shown: InPrompt<'_>,
) -> impl Iterator<Item = Problem> {
    let [whole, in_part] = [shown.whole, shown.in_part].map(|paths| {
        paths
            .iter()
            .map(|path| normalized_path(path))
            .collect::<Vec<_>>()
    });
    proposal
        .writes
        .iter()
        .zip(touched)
        .filter_map(move |(FileWrite { change, .. }, path)| {
            if in_part.contains(path) {
                let why = "was shown in part only, so it may not be replaced; leave it unchanged.";
                return Some(problem(edits::IN_PART, path, format!("`{path}` {why}")));
            }
            let is_edited = matches!(change, Change::Edits(_));
            (is_edited && !whole.contains(path))
                .then(|| problem("edit-unseen", path, format!("`{path}`{}", edits::UNSEEN)))
        })
}

fn problem(code: &str, path: &str, message: String) -> Problem {
    Problem {
        path: Some(path.to_owned()),
        ..Problem::new(code, message)
    }
}

/// Every path of a proposal admitted, or why the proposal is refused.
type Judged = Result<Vec<Admitted>, (WhyRefused, Vec<Problem>)>;

fn malformed(faults: &[proposal::Fault]) -> Vec<Problem> {
    let problem = |fault: &proposal::Fault| Problem {
        code: fault.code.as_str().to_owned(),
        path: None,
        line: fault.line,
        message: fault.to_string(),
    };
    faults.iter().map(problem).collect()
}

fn not_written(error: &ApplyError) -> Problem {
    let message = crate::fault::with_sources(error);
    Problem {
        code: "not-written".to_owned(),
        path: None,
        line: None,
        message,
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests make a tree with plain writes"
)]
mod tests {
    use super::*;
    use crate::intake::tests::rules;

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
            let shown = InPrompt {
                whole: &[],
                in_part: &in_part,
            };
            rules
                .take_in_proposal(&Reply::of_text(&reply), shown, &undo)
                .unwrap()
        };
        let stale = write("b.py", "deadbeef");
        for writes in [
            vec![write("src/a.py", nothing)],
            vec![write("./src//a.py", nothing), stale],
        ] {
            let Taken::Refused { why, problems, .. } = take(&writes, &["src/a.py", "c.py"]) else {
                panic!("written")
            };
            assert_eq!(why, WhyRefused::OutOfScope);
            let problem = problems.last().unwrap();
            assert_eq!(
                (problem.code.as_str(), problem.path.as_deref()),
                ("shown-in-part", Some("src/a.py"))
            );
            assert!(!rules.root.join("src/a.py").exists() && !undo.exists());
        }
        assert!(matches!(
            take(&[write("src/a.py", nothing)], &["c.py"]),
            Taken::Written { .. }
        ));
    }

    #[test]
    fn an_edit_needs_a_file_that_was_shown_whole_and_as_it_was_shown() {
        let top = tempfile::tempdir().unwrap();
        let rules = rules(top.path());
        let old = "one\ntwo\nthree\n";
        std::fs::write(rules.root.join("a.txt"), old).unwrap();
        std::fs::write(
            rules.root.join("big.txt"),
            "line\n".repeat(40_959) + "end\n",
        )
        .unwrap();
        let big =
            code_commit_logging::sha256_hex(&std::fs::read(rules.root.join("big.txt")).unwrap());
        let base = code_commit_logging::sha256_hex(old.as_bytes());
        let nothing = code_commit_logging::sha256_hex(b"");
        let take = |path: &str, base: &str, search: &str, replace: &str| {
            let edits = serde_json::json!([{ "search": search, "replace": replace }]);
            let write = serde_json::json!({ "path": path, "base_sha256": base, "edits": edits });
            let reply = serde_json::json!({ "summary": "s", "writes": [write] }).to_string();
            let whole = ["a.txt", "new.txt", "big.txt"].map(str::to_owned);
            let shown = InPrompt {
                whole: &whole,
                in_part: &["part.txt".to_owned()],
            };
            match rules
                .take_in_proposal(&Reply::of_text(&reply), shown, &top.path().join("undo"))
                .unwrap()
            {
                Taken::Written { touched, .. } => touched.concat(),
                Taken::Refused { why, problems, .. } => {
                    let codes: Vec<&str> = problems.iter().map(|problem| &*problem.code).collect();
                    format!("{why:?} {}", codes.join(" "))
                }
            }
        };
        for (path, base, search, told) in [
            ("b.txt", &nothing, "two", "OutOfScope edit-unseen"),
            ("part.txt", &nothing, "two", "OutOfScope shown-in-part"),
            ("new.txt", &nothing, "two", "Unusable edit-of-no-file"),
            ("a.txt", &nothing, "two", "Stale stale-base"),
            ("a.txt", &base, "TWO", "Unusable edit-misses"),
            ("big.txt", &big, "line", "Unusable edit-ambiguous"),
        ] {
            assert_eq!(take(path, base, search, "2"), told, "{path} {search}");
        }
        assert_eq!(
            take("big.txt", &big, "end", &"x".repeat(20)),
            "Unusable file-too-large"
        );
        assert_eq!(take("./a.txt", &base, "two\n", "2"), "a.txt");
        assert_eq!(
            std::fs::read_to_string(rules.root.join("a.txt")).unwrap(),
            "one\n2\nthree\n"
        );
    }

    #[test]
    fn the_limit_of_all_contents_together_holds_for_what_edits_make_of_files() {
        let top = tempfile::tempdir().unwrap();
        let rules = rules(top.path());
        let content = "line\n".repeat(38_000) + "end\n";
        let paths = ["a.txt", "b.txt", "c.txt"].map(str::to_owned);
        let writes = paths.each_ref().map(|path| {
            std::fs::write(rules.root.join(path), &content).unwrap();
            let edits = serde_json::json!([{ "search": "end\n", "replace": "END\n" }]);
            let base = code_commit_logging::sha256_hex(content.as_bytes());
            serde_json::json!({ "path": path, "base_sha256": base, "edits": edits })
        });
        let take = |writes: &[serde_json::Value]| {
            let reply = serde_json::json!({ "summary": "s", "writes": writes }).to_string();
            let shown = InPrompt {
                whole: &paths,
                in_part: &[],
            };
            rules
                .take_in_proposal(&Reply::of_text(&reply), shown, &top.path().join("undo"))
                .unwrap()
        };
        let Taken::Refused { why, problems, .. } = take(&writes) else {
            panic!("written")
        };
        assert_eq!(
            (why, problems[0].code.as_str()),
            (WhyRefused::Unusable, "proposal-too-large")
        );
        assert!(matches!(take(&writes[1..]), Taken::Written { .. }));
    }
}
