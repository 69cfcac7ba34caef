//! What is looked at in the whole tree before the model is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::anyhow;
use engine::Links;
use guard::{Guard, Writer};
use repo::{Asked, Look, WorkTree};

use super::{Which, beside_or_above, refused};
use crate::args::RunArgs;
use crate::commands::run;
use crate::exit::Failure;
use crate::keys;
use crate::output::{Output, printable_name};
use crate::plan::{Plan, Task};
use crate::preflight::{self, CODE_ROLLUP};
use crate::terminal::phrases;

/// Of the files that are not committed so many are named.
const NAMED_FILES: usize = 5;

/// The two looks at the whole tree: at what is not committed, and at the ignore rules. At a large one both at once.
pub fn look_at(
    which: Which,
    tree: &WorkTree,
    plan: &Plan,
    args: &RunArgs,
    output: &Output,
) -> Result<Guard, Failure> {
    let root = tree.root();
    if tree.is_small() {
        clean_enough(which, tree, plan, args, output)?;
        return run::guard(tree, plan);
    }
    std::thread::scope(|scope| {
        let guard = scope.spawn(|| run::guard_apart(root, plan));
        let clean = clean_enough(which, tree, plan, args, output);
        let guard = guard.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        clean.and(guard)
    })
}

/// Changes that are not committed are named; they refuse the run only where that is asked for.
fn clean_enough(
    which: Which,
    tree: &WorkTree,
    plan: &Plan,
    args: &RunArgs,
    output: &Output,
) -> Result<(), Failure> {
    let rollup = Rollup::of(which, tree.root(), &plan.task);
    let look = match tree.look(&Asked { beginnings: &keys::places(), since: rollup.made }) {
        Ok(look) => look,
        Err(error) if args.require_clean => return Err(Failure::refused(error, "see what git status says")),
        Err(error) => {
            output.warn(&format!("cannot tell what is not committed: {:#}", anyhow::Error::from(error)));
            return Ok(());
        }
    };
    let (mut dirty, tracked) = (shown(&look.dirty), shown(&look.tracked));
    keys_stay_out(which, &dirty, &tracked, output)?;
    dirty.retain(|path| !is_own(path));
    if dirty.is_empty() {
        rollup.warn_of_younger(tree.root(), &look, output);
        return Ok(());
    }
    let text = format!("not committed: {}", phrases::first(&dirty, NAMED_FILES));
    if args.require_clean {
        return Err(Failure::refused(anyhow!(text), "commit or stash them, or leave --require-clean away"));
    }
    output.warn(&format!(
        "{text}; code-commit undo gives back what the run writes over, not what a build changes"
    ));
    rollup.warn_of_younger(tree.root(), &look, output);
    Ok(())
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// No key is committed by accident (S1 §Safety): the default loop refuses what git tracks of `agent-config`, S0 knows no such rule.
fn keys_stay_out(which: Which, dirty: &[String], tracked: &[String], output: &Output) -> Result<(), Failure> {
    if which == Which::Commit {
        preflight::agent_config_is_untracked(tracked).map_err(|missing| refused(vec![missing]))?;
    }
    for path in dirty.iter().filter(|path| keys::is_key_file(path) && !tracked.contains(path)) {
        let path = printable_name(path);
        output.warn(&format!(
            "{path} is not ignored by git, so a key could be committed: add it to .gitignore"
        ));
    }
    for path in tracked.iter().filter(|path| keys::is_key_file(path)) {
        let path = printable_name(path);
        output.warn(&format!(
            "{path} is tracked by git, whatever .gitignore says: take it out with git rm --cached {path}"
        ));
    }
    Ok(())
}

/// What the harness itself writes into the project is no sign of unfinished work.
fn is_own(path: &str) -> bool {
    let mut own = guard::PROTECTED.iter().filter(|name| name.writer == Writer::Harness);
    own.any(|name| Path::new(path).starts_with(name.at_root()))
}

/// The code roll-up, as the model is shown it.
struct Rollup<'p> {
    path: String,
    text: &'p str,
    made: Option<SystemTime>,
}

/// Of so many files that are younger than the roll-up it is asked whether it holds them, if each is no larger than this.
const MOST_COMPARED: usize = 200;
const MOST_BYTES: u64 = 1 << 20;

impl<'p> Rollup<'p> {
    fn of(which: Which, root: &Path, task: &'p Task) -> Self {
        let path = match which {
            Which::Commit => CODE_ROLLUP.to_owned(),
            Which::Implement => beside_or_above(root, CODE_ROLLUP),
        };
        let made = fs::metadata(root.join(&path)).and_then(|found| found.modified()).ok();
        Self { path, text: task.codebase(), made }
    }

    /// Files that the model is shown as they were. One that the roll-up does not name is no part of it.
    fn warn_of_younger(&self, root: &Path, look: &Look, output: &Output) {
        let is_younger = |path: &&PathBuf| {
            let found = root.join(path).symlink_metadata().ok();
            // Clocks of disks are coarse: what is as old as the roll-up may have come after it.
            found.is_some_and(|found| found.is_file() && found.modified().ok() >= self.made)
        };
        let younger = look.since.iter().chain(&look.dirty).filter(is_younger).take(MOST_COMPARED);
        let younger = younger.filter(|path| path.to_str().is_some_and(|path| self.text.contains(path)));
        let mut younger: Vec<PathBuf> =
            younger.filter(|path| !self.holds(&root.join(path))).cloned().collect();
        younger.sort();
        younger.dedup();
        if !younger.is_empty() {
            let names = phrases::first(&shown(&younger), NAMED_FILES);
            let path = &self.path;
            output.warn(&format!(
                "{path} is older than {names}: the model sees what was there before; code-commit rollup makes it anew"
            ));
        }
    }

    /// Or shows by right without it: what is no text.
    fn holds(&self, path: &Path) -> bool {
        let read = engine::read_regular(path, MOST_BYTES, Links::Refused);
        let text = read.ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
        text.is_none_or(|text| text.contains('\0') || self.text.contains(text.trim_end_matches('\n')))
    }
}
