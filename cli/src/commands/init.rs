//! `code-commit init`: prepares any folder for `code-commit`. Overwrites nothing.

mod script;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use code_commit_guard::{Configuration, Surroundings};
use code_commit_names::ours::BUILD;
use code_commit_repo::{OpenError, WorkTree};
use code_commit_runs::gitignore::{ADDED, hide_agent_config};
use code_commit_runs::preflight::{self, QUERY};
use code_commit_runs::trusted::Trusted;
use code_commit_runs::{Exit, Failure, Host, next, place};
use code_commit_settings::Options;

use crate::args::InitArgs;
use crate::commands::commit;

use self::script::Script;

/// Creates what is missing and says what to do next.
pub fn run(args: &InitArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let (output, here) = (host.output, host.here()?);
    preflight::own_or_absent(here)
        .map_err(|link| Failure::refused(anyhow!(link.what), link.hint))?;
    if let Err(OpenError::NotARepository { .. }) = WorkTree::at(here) {
        let git = Trusted::at(here, None, host.environment).git(here)?;
        git.init()
            .map_err(|error| Failure::refused(error, "make the folder writable"))?;
        output.report("created a git repository");
    }
    let tree = place::work_tree(here)?;
    if tree.root().starts_with(tree.git_dir()) {
        let why = anyhow!("{} belongs to git", tree.root().display());
        return Err(Failure::refused(why, "change to the folder of the project"));
    }
    let around = Surroundings::find(tree.root(), Configuration::All)
        .map_err(|error| Failure::refused(error, "make the folder readable"))?;
    let mut made = Vec::new();
    if hide_agent_config(&around, tree.root())?.is_some() {
        made.push(ADDED.to_owned());
    }
    made.extend(fill(tree.root(), args).map_err(Failure::cannot_make)?);
    output.object(&serde_json::json!({ "event": "init", "made": made }));
    for line in &made {
        output.report(line);
    }
    if made.is_empty() {
        output.report("everything already exists");
    }
    let settings = code_commit_runs::config::load(tree.root(), &Options::default(), host)?;
    let run = if args.implement {
        "code-commit implement"
    } else {
        "code-commit"
    };
    // The tree is read anew: files have been made.
    let steps = next::steps(&place::work_tree(here)?, &settings, run, host);
    let lines = steps
        .iter()
        .enumerate()
        .map(|(index, step)| format!("\n  {}. {step}", index + 1));
    output.report(&format!("\nnext:{}", lines.collect::<String>()));
    Ok(Exit::Done)
}

fn fill(root: &Path, args: &InitArgs) -> anyhow::Result<Vec<String>> {
    let mut made = Vec::new();
    preflight::own_folder(root)?;
    if create(&root.join(QUERY), "", 0o666).with_context(|| format!("cannot make {QUERY}"))? {
        made.push(format!("{QUERY}: empty, for you to write"));
    }
    if args.implement {
        let path = commit::beside_or_above(root, commit::SYSTEM_PROMPT);
        let text = code_commit_prompt::implement::SYSTEM_PROMPT;
        if create(&root.join(&path), text, 0o666).with_context(|| format!("cannot make {path}"))? {
            made.push(format!(
                "{path}: teaches the model how to reply; edit it as you like"
            ));
        }
    }
    let (build, what) = build_script(root);
    if create(&root.join(BUILD), &build, 0o777).with_context(|| format!("cannot make {BUILD}"))? {
        made.push(format!("{BUILD}: {what}"));
    }
    Ok(made)
}

/// A first build script, and what it does.
fn build_script(root: &Path) -> (String, String) {
    let head = "#!/bin/sh\n# Exits with 0 if and only if the project is correct. code-commit runs it after every change.\nset -eu\n";
    let text = |name: &str| {
        let bytes = code_commit_dir::read(
            &root.join(name),
            MOST_BYTES,
            code_commit_dir::Links::Followed,
        )
        .ok()
        .flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    if let Some(Script { lines, what }) = script::script(&text) {
        return (format!("{head}{lines}\n"), what);
    }
    let line = "echo 'build.sh: replace this line with the commands that build and test the project' >&2\nexit 1\n";
    (
        format!("{head}{line}"),
        "fails until you add the commands that build and test the project".to_owned(),
    )
}

/// A longer file says nothing about how to build a project.
const MOST_BYTES: u64 = 16 << 20;

/// Creates a file unless it exists; gives whether it did.
pub(super) fn create(path: &Path, content: &str, mode: u32) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(mode).open(path) {
        Ok(mut file) => file.write_all(content.as_bytes()).map(|()| true),
        Err(there) if there.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(other) => Err(other),
    }
}
