//! Edit blocks: from hunks to the whole content of a file, which is then written like any other.
//!
//! Only a file that the guard has admitted is read, through the guard's own descriptor, and only with the
//! content that it was judged with. `apply` compares that content once more before it writes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use guard::Admitted;
use logging::sha256_hex;
use parser::edit::{self, Hunk, Hunks, Misfit, Why};
use parser::{FileAction, Reply};

use engine::Problem;

use super::nearest::nearest;
use crate::fault::Fault;
use crate::kept::undo_folders_before;

/// Larger files are not edited.
const LARGEST: u64 = 64 << 20;

/// Finds a file's content in the code that a model was sent.
pub type Code<'c> = Box<dyn Fn(&str) -> Option<String> + 'c>;

/// What whoever wrote a reply has seen of the files that it edits.
#[derive(Default)]
pub struct Shown<'s> {
    code: Option<&'s Code<'s>>,
    /// Files that the run has changed, each with the hash of the content that it left there, if any.
    left: BTreeMap<PathBuf, Option<String>>,
}

impl<'s> Shown<'s> {
    /// What the prompt of this round showed: the code, and the run's own changes.
    pub(crate) fn in_round(round: u32, run: &Path, code: &'s Code<'_>) -> Result<Self, Fault> {
        let earlier = undo_folders_before(run, round)?;
        let left = apply::hashes_after(&earlier).map_err(Fault::Undo)?;
        let left = left.into_iter().map(|(path, hash)| (PathBuf::from(path), hash)).collect();
        Ok(Self { code: Some(code), left })
    }

    /// Whether the file still is as it was shown. One that was not shown is taken as it is.
    fn fits(&self, path: &str, content: &str) -> bool {
        if let Some(hash) = self.left.get(Path::new(path)) {
            return *hash == Some(sha256_hex(content.as_bytes()));
        }
        let whole_lines = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
        let shown = self.code.and_then(|code| code(path));
        shown.is_none_or(|shown| whole_lines(&shown) == whole_lines(content))
    }

    /// Whether the lines of a file may be quoted: a model must not fish for those of a file that the code
    /// leaves out, because it may hold secrets.
    fn may_quote(&self, path: &str) -> bool {
        self.left.contains_key(Path::new(path)) || self.code.is_none_or(|code| code(path).is_some())
    }
}

/// The new content of each file of the reply that is edited, in the order of its files; or everything that
/// keeps the edits from being made.
pub(super) fn contents(
    reply: &Reply<'_>,
    admitted: &[Admitted],
    shown: &Shown<'_>,
) -> Result<Vec<Option<String>>, Vec<Problem>> {
    let (mut contents, mut problems) = (Vec::new(), Vec::new());
    for (file, path) in reply.files().zip(admitted) {
        let FileAction::Edit(hunks) = file.action else {
            contents.push(None);
            continue;
        };
        match edited(path, hunks, shown) {
            Ok(content) => contents.push(Some(content)),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() { Ok(contents) } else { Err(problems) }
}

fn edited(path: &Admitted, hunks: Hunks<'_>, shown: &Shown<'_>) -> Result<String, Vec<Problem>> {
    let old = read(path).map_err(|problem| vec![problem])?;
    if !shown.fits(path.path(), &old) {
        let what = " is not as you were shown it, because it was changed since; leave it as it is.";
        return Err(vec![problem(guard::Code::StaleBase.as_str(), path, what)]);
    }
    let quotable = shown.may_quote(path.path()).then_some(&*old);
    replaced(path, &old, &hunks.iter().collect::<Vec<_>>(), quotable)
}

/// The content of an admitted file with these hunks, for somebody who was shown the whole of it.
pub(super) fn content(path: &Admitted, hunks: &[Hunk<'_>]) -> Result<String, Vec<Problem>> {
    let old = read(path).map_err(|problem| vec![problem])?;
    replaced(path, &old, hunks, Some(&old))
}

fn replaced(
    path: &Admitted,
    old: &str,
    hunks: &[Hunk<'_>],
    quotable: Option<&str>,
) -> Result<String, Vec<Problem>> {
    edit::apply(old, hunks.iter().copied())
        .map_err(|misfits| misfits.iter().map(|misfit| told(path, misfit, hunks, quotable)).collect())
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
    let sha256: String = before.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    if read.is_err() || content.len() as u64 > LARGEST || sha256_hex(&content) != sha256 {
        let what = " cannot be edited: it changed while it was read, or is larger than 64 MiB.";
        return Err(problem(guard::Code::StaleBase.as_str(), path, what));
    }
    let not_text = " is not UTF-8 text, so its lines cannot be replaced.";
    String::from_utf8(content).map_err(|_| problem("edit-of-no-text", path, not_text))
}

fn told(path: &Admitted, misfit: &Misfit, hunks: &[Hunk<'_>], quotable: Option<&str>) -> Problem {
    let number = misfit.hunk;
    match misfit.why {
        Why::Absent => {
            let near = hunks.get(number - 1).zip(quotable).and_then(|(hunk, old)| nearest(old, hunk.search));
            let what = format!(", hunk {number}: the file does not have its SEARCH lines, byte for byte.");
            problem("edit-misses", path, &(what + &near.unwrap_or_default()))
        }
        Why::Ambiguous(one, other) => {
            let what = format!(
                ", hunk {number}: the file has its SEARCH lines more than once, from line {one} and from line {other}; \
                 add lines before or after them."
            );
            problem("edit-ambiguous", path, &what)
        }
        Why::Overlaps(other) => {
            let what = format!(
                ", hunk {number}: its SEARCH lines overlap those of hunk {other}; make them one hunk."
            );
            problem("edit-overlaps", path, &what)
        }
    }
}

fn problem(code: &str, path: &Admitted, what: &str) -> Problem {
    let path = path.path();
    Problem { path: Some(path.to_owned()), ..Problem::new(code, format!("`{path}`{what}")) }
}
