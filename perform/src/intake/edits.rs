//! Edit blocks: from hunks to the whole content of a file, which is then written like any other.
//!
//! Only a file that the guard has admitted is read, through the guard's own descriptor, and only with the
//! content that it was judged with. `apply` compares that content once more before it writes. The next prompt
//! shows the new content, so a file that the model was not shown is not edited: it may hold secrets.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use code_commit_apply::{Action, Applied, UndoError, kept_name};
use code_commit_guard::Admitted;
use code_commit_logging::sha256_hex;
use code_commit_parser::edit::{self, Hunk, Hunks, Landed, Misfit, Rule, Why};
use code_commit_parser::{ErrorCode, FileAction, Reply, Wording as _, habits, in_place_of_a_file};
use code_commit_prompt::rollup;

use code_commit_engine::Problem;

use super::nearest::nearest;
use crate::fault::Fault;

/// Larger files are not edited: no prompt shows one.
const LARGEST: u64 = 8 << 20;
/// Each hunk is searched for in its whole file, so a reply may not have more.
pub(super) const MOST_HUNKS: usize = 1000;
/// The report quotes the nearest lines for at most this many hunks that do not match.
const MOST_QUOTES: usize = 5;

/// A longer line is quoted in part.
const MOST_CHARS: usize = 80;

/// What whoever wrote a reply has seen of the files that it edits.
#[derive(Clone, Copy)]
pub enum Shown<'s> {
    /// The tree itself: the reply comes from a person.
    Tree,
    /// The prompts of a run.
    Prompts {
        /// The code.
        codebase: &'s str,
        /// Files that the run has changed, each with the hash of the content that was shown last, if any.
        seen: &'s BTreeMap<String, Option<String>>,
        /// Bytes of the files that the reply may ask for.
        need_bytes: u64,
    },
}

impl Shown<'_> {
    /// Whether a file is as it was shown; `None` if it was not shown.
    fn is_current(self, path: &str, content: &str) -> Option<bool> {
        let Self::Prompts { codebase, seen, .. } = self else {
            return Some(true);
        };
        if let Some(hash) = seen.get(path) {
            return Some(*hash == Some(sha256_hex(content.as_bytes())));
        }
        let whole_lines = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
        match rollup::shown(codebase, path, content)? {
            rollup::Shown::Whole(shown) => Some(whole_lines(shown) == whole_lines(content)),
            rollup::Shown::Outline => None,
        }
    }

    /// Whether the reader knows of a file at most its name or its outline. A roll-up of a script does not say what it shows.
    fn hides(self, path: &Admitted) -> bool {
        let Self::Prompts { codebase, seen, .. } = self else {
            return false;
        };
        let is_told = path.before().is_some() && !seen.contains_key(path.path());
        is_told
            && rollup::is_ours(codebase)
            && !matches!(
                rollup::shown(codebase, path.path(), ""),
                Some(rollup::Shown::Whole(_))
            )
    }
}

/// The code of what is said of files that were not shown whole.
pub(super) const IN_PART: &str = "shown-in-part";
/// Said of files that exist and of others, so that nobody learns which do.
pub(super) const UNSEEN: &str =
    " was not shown, so its lines cannot be edited; give its whole content.";

/// The quotes from files that a report may still hold.
pub(super) struct Quotes(usize);

impl Default for Quotes {
    fn default() -> Self {
        Self(MOST_QUOTES)
    }
}

/// Why there are too many hunks in a reply, if there are.
pub(super) fn too_many(hunks: usize) -> Option<Problem> {
    let message = format!(
        "The reply has {hunks} hunks, more than the {MOST_HUNKS} allowed; give the whole content of \
             files that change in many places."
    );
    (hunks > MOST_HUNKS).then(|| Problem::new("edit-too-many", message))
}

/// What a reply makes of its files.
#[derive(Default)]
pub(super) struct Contents {
    /// The new content of each file that is edited, in the order of the reply's files.
    pub(super) edited: Vec<Option<String>>,
    /// What had to be allowed for that.
    pub(super) relaxed: Vec<Problem>,
}

/// What keeps a reply from being applied.
#[derive(Default)]
pub(super) struct Misfits {
    pub(super) problems: Vec<Problem>,
    /// Files that have to be shown before they are changed, each with its content.
    pub(super) shown: Vec<(String, String)>,
}

/// The new contents; or everything that keeps the edits from being made, and contents that are none.
pub(super) fn contents(
    reply: &Reply<'_>,
    admitted: &[Admitted],
    shown: Shown<'_>,
) -> Result<Contents, Misfits> {
    let hunks = |file: code_commit_parser::FileBlock<'_>| {
        hunks_of(&file.action).map_or(0, |hunks| hunks.iter().count())
    };
    if let Some(problem) = too_many(reply.files().map(hunks).sum()) {
        return Err(Misfits {
            problems: vec![problem],
            ..Misfits::default()
        });
    }
    let (mut contents, mut misfits, mut quotes) =
        (Contents::default(), Misfits::default(), Quotes::default());
    for (file, path) in reply.files().zip(admitted) {
        if shown.hides(path) && misfits.hidden(path, &file.action) {
            continue;
        }
        let Some(hunks) = hunks_of(&file.action) else {
            contents.edited.push(None);
            misfits.problems.extend(foreign(path, &file.action));
            continue;
        };
        let hunks: Vec<Hunk<'_>> = hunks.iter().collect();
        match content(path, &hunks, shown, &mut quotes) {
            Ok(landed) => {
                contents.relaxed.extend(relaxed(path, &landed));
                contents.edited.push(Some(landed.text));
            }
            Err(more) => misfits.problems.extend(more),
        }
    }
    if misfits.problems.is_empty() {
        Ok(contents)
    } else {
        Err(misfits)
    }
}

impl Misfits {
    /// Refuses a change of a file that was not shown whole: whoever replaces it loses the rest. The next prompt
    /// shows it, if it may. `false` for what loses nothing, and for an edit of what may not be shown.
    fn hidden(&mut self, path: &Admitted, action: &FileAction<'_>) -> bool {
        let text = read(path);
        let is_edit = match action {
            FileAction::Delete => return false,
            FileAction::Write(_) if text.as_deref() == Ok("") => return false,
            FileAction::Write(_) => false,
            FileAction::Edit(_) => true,
        };
        let text = text.ok().filter(|text| rollup::may_show(path.path(), text));
        let remedy = match text {
            None if is_edit => return false,
            None => ", so it may not be replaced; leave it unchanged.",
            Some(_) => "; all of it follows: give its change again.",
        };
        let what = format!(" was not shown whole{remedy}");
        self.problems.push(problem(IN_PART, path, &what));
        self.shown
            .extend(text.map(|text| (path.path().to_owned(), text)));
        true
    }
}

/// A diff and the like never becomes the file.
fn foreign(path: &Admitted, action: &FileAction<'_>) -> Option<Problem> {
    let FileAction::Write(content) = action else {
        return None;
    };
    not_a_file(path, content)
}

pub(super) fn not_a_file(path: &Admitted, content: &str) -> Option<Problem> {
    let line = in_place_of_a_file(path.path(), content, || read(path).unwrap_or_default())?;
    let first: String = content
        .get(line)
        .unwrap_or_default()
        .chars()
        .take(MOST_CHARS)
        .collect();
    let what = format!(
        ", its whole content: {}; {}.",
        ErrorCode::OtherForm.message(&first),
        ErrorCode::OtherForm.advice(&first)
    );
    Some(problem(ErrorCode::OtherForm.as_str(), path, &what))
}

/// What had to be allowed, one line for each hunk.
pub(super) fn relaxed(path: &Admitted, landed: &Landed) -> Vec<Problem> {
    let of_hunk = |rules: &[(usize, Rule)]| {
        let (number, _) = rules.first()?;
        let allowed: Vec<&str> = rules.iter().map(|(_, rule)| rule.as_str()).collect();
        let what = format!(
            ", hunk {number}: its SEARCH lines match but for {}.",
            allowed.join(" and ")
        );
        Some(problem("edit-relaxed", path, &what))
    };
    landed
        .relaxed
        .chunk_by(|one, other| one.0 == other.0)
        .filter_map(of_hunk)
        .collect()
}

fn hunks_of<'a, 't>(action: &'a FileAction<'t>) -> Option<&'a Hunks<'t>> {
    match action {
        FileAction::Edit(hunks) => Some(hunks),
        FileAction::Write(_) | FileAction::Delete => None,
    }
}

/// The content of an admitted file with these hunks.
pub(super) fn content(
    path: &Admitted,
    hunks: &[Hunk<'_>],
    shown: Shown<'_>,
    quotes: &mut Quotes,
) -> Result<Landed, Vec<Problem>> {
    let old = read(path);
    let is_current = shown.is_current(path.path(), old.as_deref().unwrap_or_default());
    let old = match (is_current, old) {
        (None, _) => return Err(vec![problem("edit-unseen", path, UNSEEN)]),
        (Some(true), Ok(old)) => old,
        (Some(false), Ok(_)) => {
            let what =
                " is not as you were shown it, because it was changed since; leave it unchanged.";
            return Err(vec![problem(
                code_commit_guard::Code::StaleBase.as_str(),
                path,
                what,
            )]);
        }
        (Some(_), Err(problem)) => return Err(vec![problem]),
    };
    let landed = edit::land(&old, hunks.iter().copied()).map_err(|misfits| {
        misfits
            .iter()
            .map(|misfit| told(path, misfit, hunks, &old, quotes))
            .collect::<Vec<_>>()
    })?;
    let omitted: Vec<Problem> = hunks
        .iter()
        .enumerate()
        .filter_map(|hunk| omitted(path, &old, hunk))
        .collect();
    if omitted.is_empty() {
        Ok(landed)
    } else {
        Err(omitted)
    }
}

/// New lines that stand for lines of the file would replace them.
fn omitted(path: &Admitted, old: &str, (index, hunk): (usize, &Hunk<'_>)) -> Option<Problem> {
    let found = habits::placeholders(old, hunk.replace).into_iter().next()?;
    let what = format!(
        ", hunk {}: its new lines have \"{}\" instead of code; write the lines themselves, or two hunks.",
        index + 1,
        found.text.chars().take(MOST_CHARS).collect::<String>()
    );
    Some(problem("edit-omits", path, &what))
}

/// What a reply that was applied has made of the files that it edits, from the pre-images: after a kill, the
/// tree may have been changed.
pub(super) fn made(
    reply: &Reply<'_>,
    applied: &Applied,
    undo: &Path,
) -> Result<Vec<(String, String)>, Fault> {
    let mut made = Vec::new();
    for (number, (file, change)) in reply.files().zip(&applied.changes).enumerate() {
        let Some(hunks) = hunks_of(&file.action).filter(|_| change.action == Action::Write) else {
            continue;
        };
        let kept = undo.join(kept_name(number));
        let old = code_commit_dir::read(&kept, LARGEST, code_commit_dir::Links::Refused)
            .map_err(Fault::file("read", &kept))?;
        let new = old
            .and_then(|old| String::from_utf8(old).ok())
            .and_then(|old| edit::apply(&old, hunks.iter()).ok())
            .filter(|new| change.after_sha256 == Some(sha256_hex(new.as_bytes())));
        let path = file.path.to_owned();
        match new {
            Some(new) => made.push((path, new)),
            None => return Err(Fault::Undo(UndoError::Damaged { path, kept })),
        }
    }
    Ok(made)
}

/// The text that the guard has seen.
fn read(path: &Admitted) -> Result<String, Problem> {
    let Some(before) = path.before() else {
        let what = " does not exist, so it has no lines to replace; give its whole content.";
        return Err(problem("edit-of-no-file", path, what));
    };
    let mut content = Vec::new();
    let read = path.folder().open_file(path.name());
    let read = read.and_then(|file| file.take(LARGEST + 1).read_to_end(&mut content));
    if content.len() as u64 > LARGEST {
        let what = format!(
            " cannot be edited: it is larger than {} MiB.",
            LARGEST >> 20
        );
        return Err(problem("edit-too-large", path, &what));
    }
    let sha256: String = before
        .sha256
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if read.is_err() || sha256_hex(&content) != sha256 {
        let what = " cannot be edited: it was changed while it was read.";
        return Err(problem(
            code_commit_guard::Code::StaleBase.as_str(),
            path,
            what,
        ));
    }
    let not_text = " is not UTF-8 text, so its lines cannot be replaced.";
    String::from_utf8(content).map_err(|_| problem("edit-of-no-text", path, not_text))
}

fn told(
    path: &Admitted,
    misfit: &Misfit,
    hunks: &[Hunk<'_>],
    old: &str,
    quotes: &mut Quotes,
) -> Problem {
    let number = misfit.hunk;
    match misfit.why {
        Why::Absent => {
            let hunk = hunks.get(number - 1).filter(|_| quotes.0 > 0);
            quotes.0 = quotes.0.saturating_sub(1);
            let near = hunk.and_then(|hunk| nearest(old, hunk.search));
            let what = format!(", hunk {number}: the file does not have its SEARCH lines.");
            problem("edit-misses", path, &(what + &near.unwrap_or_default()))
        }
        Why::Ambiguous(one, other) => {
            let what = format!(
                ", hunk {number}: the file has its SEARCH lines more than once, from line {one} and from line {other}; \
                 add lines around them that occur once."
            );
            problem("edit-ambiguous", path, &what)
        }
        Why::Overlaps(other) => {
            let what = format!(", hunk {number}: its SEARCH lines overlap those of hunk {other}");
            problem("edit-overlaps", path, &(what + "; make them one hunk."))
        }
    }
}

fn problem(code: &str, path: &Admitted, what: &str) -> Problem {
    let path = path.path();
    Problem {
        path: Some(path.to_owned()),
        ..Problem::new(code, format!("`{path}`{what}"))
    }
}
