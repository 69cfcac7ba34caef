//! `code-commit why FILE[:LINE]`: which run, round and model a line comes from, what was refused and built before,
//! and with which verdict; or that no run recorded here made it.
//!
//! Git says with which commit a line came, also through renames and rebases. Whether a run had written it is
//! decided by content: what the file held before each round and after it is in the records.

mod agents;
mod lines;
mod noted;
mod origin;
mod steps;
mod tell;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_repo::WorkTree;
use code_commit_report::printable;

use self::origin::File;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::note::REFERENCE;
use crate::place;
use crate::site::Site;
use crate::trusted::Trusted;

/// What is asked for: `FILE` or `FILE:LINE`.
#[derive(Debug)]
pub struct Request {
    /// As it was given.
    pub place: PathBuf,
}

/// Says where the lines come from.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::here(host)?;
    let (path, line) = split(&args.place, &site.root);
    let shown = path.display().to_string();
    let whole = whole(&path, &site.root)?;
    let own = own_repository(&whole, &site)?;
    let tree = own.as_ref().map_or_else(|| site.tree(), Ok)?;
    let content = code_commit_dir::read(&whole, u64::MAX, code_commit_dir::Links::Refused)
        .with_context(|| format!("cannot read {shown}"))
        .and_then(|content| content.with_context(|| format!("{shown} is not a regular file")))
        .map_err(|error| Failure::refused(error, "name a file of this project"))?;
    let count = lines::lines(&content).len();
    if let Some(line) = line.filter(|line| *line == 0 || *line > count) {
        let error = anyhow!(
            "{shown} has {}, and none is {line}",
            code_commit_report::phrases::count(count as u64, "line")
        );
        return Err(Failure::refused(error, "lines are counted from 1"));
    }
    let from_top = whole.strip_prefix(tree.top()).unwrap_or(&whole);
    let path = from_top
        .to_str()
        .ok_or_else(|| Failure::not_utf8(from_top, "git's blame", "rename the file"))?;
    let git = Trusted::of(tree, host.environment).git(tree.top())?;
    let notes = tree.notes(REFERENCE).unwrap_or_else(|error| {
        host.output
            .warn(&printable(&format!("{:#}", anyhow::Error::from(error))));
        None
    });
    let has_notes = notes.is_some();
    let file = File {
        tree,
        registry: site.registry(),
        path: path.to_owned(),
        content,
        line,
        notes,
    };
    let origins = file.origins(&git, host.output)?;
    origins.tell(&shown, line.is_some(), &site.root, host.output);
    if let Some(remote) = tree
        .remote()
        .filter(|_| !has_notes && origins.may_be_noted())
    {
        let fetch = format!("git fetch {remote} {REFERENCE}:{REFERENCE}");
        host.output.note(&printable(&format!(
            "no notes are here; {remote} may have some: {fetch}"
        )));
    }
    Ok(Exit::Done)
}

/// The repository below the project's root that holds the file, if there is one: a role of a phase has its own.
fn own_repository(file: &Path, site: &Site<'_>) -> Result<Option<WorkTree>, Failure> {
    let folder = file.parent().unwrap_or(file);
    let Ok(nearest) = WorkTree::at(folder) else {
        return Ok(None);
    };
    let top = site.trusted.tree().map(WorkTree::top);
    if top == Some(nearest.top()) || !nearest.top().starts_with(&site.root) {
        return Ok(None);
    }
    place::work_tree(nearest.top()).map(Some)
}

/// A file whose name ends like a line is a file.
fn split(place: &Path, root: &Path) -> (PathBuf, Option<usize>) {
    let line = || {
        let (path, line) = place.to_str()?.rsplit_once(':')?;
        Some((PathBuf::from(path), line.parse().ok()?))
    };
    let is_there = root.join(place).symlink_metadata().is_ok();
    let line = if is_there { None } else { line() };
    line.map_or_else(
        || (place.to_owned(), None),
        |(path, line)| (path, Some(line)),
    )
}

/// The file's place, with symlinks to its folder resolved.
fn whole(path: &Path, root: &Path) -> Result<PathBuf, Failure> {
    let place = root.join(path);
    let folder = place.parent().unwrap_or(&place);
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot find {}", path.display()));
    let folder = folder.map_err(|error| Failure::refused(error, "name a file of this project"))?;
    let whole = folder.join(place.file_name().unwrap_or_default());
    if whole.starts_with(root) {
        return Ok(whole);
    }
    let error = anyhow!("{} is not in {}", path.display(), root.display());
    Err(Failure::refused(
        error,
        "change to the project that it belongs to",
    ))
}
