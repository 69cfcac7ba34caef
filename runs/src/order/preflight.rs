//! Preconditions of an order (S2 §6.1). Checking them modifies nothing.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use anyhow::anyhow;
use code_commit_guard::{Code, Guard, Op, Policy, Request, Verdict};
use code_commit_llm::Model;
use code_commit_loop_order::VERIFY_SCRIPT;
use code_commit_loop_order::{FieldProblem, MOST_ORDER_BYTES, WorkOrder};
use code_commit_repo::{Git, WorkTree};
use code_commit_report::phrases;
use code_commit_settings::{Environment, Keys, Settings};

use crate::exit::Failure;
use crate::host::Host;
use crate::place;
use crate::trusted::Trusted;

/// Uncommitted files named in a message.
const NAMED_FILES: usize = 5;

/// Problems of an order named in a message.
pub const NAMED_PROBLEMS: usize = 50;

/// An order and its file.
pub struct Read {
    /// Absolute.
    pub path: PathBuf,
    /// What it says.
    pub order: WorkOrder,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The model to call; its key must be set (S2 §2.12).
pub fn model(settings: &Settings, keys: &Keys, host: Host<'_>) -> Result<Box<dyn Model>, Failure> {
    let needed = crate::preflight::key_anyway(settings, keys);
    needed
        .and_then(|()| crate::preflight::price(settings))
        .map_err(Failure::from)?;
    host.models.open(settings, keys, host)
}

/// Reads an order; reports every mistake with its field.
pub fn read(file: &Path) -> Result<Read, Failure> {
    let cannot = |error: io::Error| {
        let error = anyhow::Error::from(error).context(format!("cannot read {}", file.display()));
        Failure::refused(error, "code-commit order new writes a first order")
    };
    let path = fs::canonicalize(file).map_err(cannot)?;
    let bytes = bounded(fs::File::open(&path).map_err(cannot)?).map_err(cannot)?;
    let order = WorkOrder::parse(&bytes).map_err(|problems| refused(file, &problems))?;
    Ok(Read { path, order, bytes })
}

/// Reads at most one byte more than an order may have: a device never ends.
pub fn bounded(source: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source
        .take(MOST_ORDER_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All problems of an order in one refusal, up to a limit.
pub fn refused(file: &Path, problems: &[FieldProblem]) -> Failure {
    let mut lines: Vec<String> = problems
        .iter()
        .take(NAMED_PROBLEMS)
        .map(ToString::to_string)
        .collect();
    lines.extend(phrases::rest(problems.len(), NAMED_PROBLEMS));
    let error = anyhow!(
        "{} cannot be carried out:\n       {}",
        file.display(),
        lines.join("\n       ")
    );
    Failure::refused(
        error,
        "compare it with the template: code-commit order new -",
    )
}

/// The repository at the top of its work tree: a rollback would affect all of it.
pub fn repository(folder: &Path) -> Result<WorkTree, Failure> {
    let tree = place::work_tree(folder)?;
    if tree.root() == tree.top() {
        return Ok(tree);
    }
    let error = anyhow!("{} is not the top of its work tree", tree.root().display());
    Err(Failure::refused(
        error,
        format!("--repo {}", tree.top().display()),
    ))
}

/// The git program for this tree.
pub fn git(
    tree: &WorkTree,
    settings: &Settings,
    environment: &Environment,
) -> Result<Git, Failure> {
    Trusted::of(tree, environment)
        .under(settings)
        .git(tree.top())
}

/// The tree must be clean, without anything `dirty`: a rollback moves away everything that git lists.
pub fn clean(tree: &WorkTree, git: &Git, dirty: &[PathBuf]) -> Result<(), Failure> {
    let dirty: Vec<String> = dirty
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if dirty.is_empty() {
        return settled(tree).and_then(|()| known(git));
    }
    let error = anyhow!(
        "the work tree is not clean: {}",
        phrases::first(&dirty, NAMED_FILES)
    );
    let mut help = "commit these files, stash them (git stash -u) or move them away".to_owned();
    if tree.has_own_filters() {
        help += "; filters of the repository's own configuration are not run, so that files which go through one look changed: name \
                 it in yours (git config --global) and not in the repository's";
    }
    Err(Failure::refused(error, help))
}

/// A rollback would end an operation in progress, such as a merge, during which an order's files cannot be
/// committed alone.
fn settled(tree: &WorkTree) -> Result<(), Failure> {
    let Some(begun) = tree.under_way() else {
        return Ok(());
    };
    let help = format!("end it first: git {begun} --continue, or git {begun} --abort");
    Err(Failure::refused(anyhow!("a {begun} is under way"), help))
}

/// Files that git is told not to check could be lost in a rollback.
fn known(git: &Git) -> Result<(), Failure> {
    let assumed = git.assumed_unchanged();
    let assumed =
        assumed.map_err(|error| Failure::refused(error, "see what git ls-files -v says"))?;
    if assumed.is_empty() {
        return Ok(());
    }
    let names = phrases::first(&assumed, NAMED_FILES);
    let error = anyhow!("git is told to treat these files as unchanged: {names}");
    Err(Failure::refused(
        error,
        "git update-index --no-assume-unchanged FILE, then commit or stash the changes",
    ))
}

/// The target of a symlink would be neither sealed nor protected by the script's name; and if the script were
/// ignored, the commands would differ from those that the user sees in the project.
pub fn verification(root: &Path) -> Result<(), Failure> {
    let is_there = fs::symlink_metadata(root.join(VERIFY_SCRIPT)).is_ok();
    let is_link =
        |path: &&Path| fs::symlink_metadata(root.join(path)).is_ok_and(|found| found.is_symlink());
    match Path::new(VERIFY_SCRIPT)
        .ancestors()
        .filter(|path| !path.as_os_str().is_empty())
        .find(is_link)
    {
        Some(link) if is_there => {
            let error = anyhow!(
                "{VERIFY_SCRIPT} is not run: {} is a symbolic link, which could lead anywhere",
                link.display()
            );
            Err(Failure::refused(
                error,
                format!("make {VERIFY_SCRIPT} a file, which may start another script"),
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// A rollback is impossible while another git holds the index.
pub(crate) fn unlocked(git: &Git) -> Result<(), Failure> {
    let lock = git.index_lock()?;
    let Some(lock) = lock else { return Ok(()) };
    let error = anyhow!(
        "{} exists: another git process is running here, or one was killed",
        lock.display()
    );
    Err(Failure::refused(
        error,
        "wait until it ends; if no git process is running here, remove that file",
    ))
}

/// A commit needs an author.
pub(crate) fn identity(git: &Git) -> Result<(), Failure> {
    let known = git.knows_identity()?;
    if known {
        return Ok(());
    }
    let error = anyhow!("--commit: git has no identity to commit with");
    Err(Failure::refused(
        error,
        "git config user.name NAME; git config user.email ADDRESS",
    ))
}

/// The record of a run names the order, the repository and its own folder.
pub(crate) fn nameable<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
    let odd = paths.into_iter().find(|path| path.to_str().is_none());
    let help = "name another place, or rename what is not UTF-8 in its path";
    odd.map_or(Ok(()), |path| {
        Err(Failure::not_utf8(
            path,
            "the record of an order's run",
            help,
        ))
    })
}

/// The output folder, as an absolute path; not created yet. It may not be inside the repository.
pub fn out(folder: &Path, root: &Path) -> Result<PathBuf, Failure> {
    let cannot = |error: io::Error| {
        let error = anyhow::Error::from(error).context(format!("cannot use {}", folder.display()));
        Failure::refused(error, "name a folder outside of the repository with --out")
    };
    let mut resolved = PathBuf::new();
    for part in std::path::absolute(folder).map_err(cannot)?.components() {
        // The part resolved so far contains no symlink, so `..` removes just its last name.
        if part == Component::ParentDir {
            resolved.pop();
            continue;
        }
        resolved.push(part);
        match fs::canonicalize(&resolved) {
            Ok(path) if path.is_dir() => resolved = path,
            Ok(_) => {
                let error = anyhow!(
                    "--out {}: {} is not a folder",
                    folder.display(),
                    resolved.display()
                );
                return Err(Failure::refused(
                    error,
                    "name a folder; it is made where it is not there",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    if resolved.starts_with(root) {
        let error = anyhow!("--out {} lies inside of the repository", folder.display());
        return Err(Failure::refused(error, "name a folder outside of it"));
    }
    Ok(resolved)
}

/// The guard of an order: allows only its files, never git's or the harness's own.
pub fn guard(trusted: &Trusted, read: &Read, settings: &Settings) -> Result<Guard, Failure> {
    let guard = open(trusted, &read.order, settings)?;
    let problems = unwritable(&guard, &read.order);
    if problems.is_empty() {
        Ok(guard)
    } else {
        Err(refused(&read.path, &problems))
    }
}

/// The guard of an order, without a check that its allowed files may be written at all.
pub fn open(trusted: &Trusted, order: &WorkOrder, settings: &Settings) -> Result<Guard, Failure> {
    let scoped = Policy::scoped(order.allowed_files.iter().cloned());
    let policy = settings
        .protect_lists()
        .iter()
        .fold(scoped, Policy::protect);
    trusted.guard(policy)
}

/// Allowed files that no order may write.
pub fn unwritable(guard: &Guard, order: &WorkOrder) -> Vec<FieldProblem> {
    let mut problems: Vec<FieldProblem> = Vec::new();
    for (at, path) in order.allowed_files.iter().enumerate() {
        if let Some(refusal) = guard.refused_for_good(path) {
            problems.push(FieldProblem {
                field: format!("allowed_files[{at}]"),
                message: refusal.to_string(),
            });
        }
    }
    if problems.is_empty() {
        the_same(guard, order)
    } else {
        problems
    }
}

/// Allowed files that are the same file where case does not matter. The guard's other objections come when a
/// file is written.
fn the_same(guard: &Guard, order: &WorkOrder) -> Vec<FieldProblem> {
    let paths = order.allowed_files.iter().map(String::as_bytes);
    let requests: Vec<_> = paths
        .map(|path| Request {
            path,
            op: Op::Write,
            base_sha256: None,
        })
        .collect();
    // If the tree cannot be inspected, reading the files reports it.
    let verdicts = guard.judge(&requests).unwrap_or_default();
    let same = |(at, verdict): (usize, Verdict)| {
        match verdict {
        Verdict::Refused(refusal) if refusal.code() == Code::Duplicate => Some(FieldProblem {
            field: format!("allowed_files[{at}]"),
            message:
                "is the same as another one where case or Unicode form is ignored; name each file once"
                    .to_owned(),
        }),
        Verdict::Refused(_) | Verdict::Admitted(_) => None,
    }
    };
    verdicts.into_iter().enumerate().filter_map(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_up_to_one_byte_too_many() {
        let most = MOST_ORDER_BYTES as u64;
        let read = |bytes| bounded(io::repeat(0).take(bytes)).unwrap().len() as u64;
        assert_eq!([most, most + 2].map(read), [most, most + 1]);
    }
}
