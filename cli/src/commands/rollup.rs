//! `code-commit rollup`: the files that git tracks, as one text for the model.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use prompt::rollup::{LeftOut, append, left_out_by_name};
use repo::WorkTree;
use serde_json::json;

use crate::args::RollupArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, printable};
use crate::preflight::AGENT_CONFIG;
use crate::terminal::phrases;

/// Of the files left out so many are named.
const NAMED_FILES: usize = 10;

/// A roll-up in memory.
pub struct RollUp {
    pub text: Vec<u8>,
    pub files: usize,
    pub left_out: Vec<(String, LeftOut)>,
}

/// Writes the roll-up, and says what is in it and what is not.
pub fn run(args: &RollupArgs, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let rollup = roll_up(&tree)?;
    if args.output == Path::new("-") {
        Output::raw(&rollup.text);
    } else {
        write(&tree.root().join(&args.output), &rollup.text)?;
        let size = phrases::bytes(rollup.text.len() as u64);
        let files = phrases::count(rollup.files as u64, "file");
        output.report(&format!("{}: {files}, {size}", args.output.display()));
    }
    for (path, why) in rollup.left_out.iter().take(NAMED_FILES) {
        output.note(&format!("left out: {} ({})", printable(path), why.reason()));
    }
    if rollup.left_out.len() > NAMED_FILES {
        output.note(&format!("left out: {} more", rollup.left_out.len() - NAMED_FILES));
    }
    if rollup.files == 0 {
        output.warn(
            "git tracks no files here, so the model would see none: git add what belongs to the project",
        );
    }
    output.object(&json!({
        "files": rollup.files, "bytes": rollup.text.len(),
        "left_out": rollup.left_out.iter()
            .map(|(path, why)| json!({ "path": path, "reason": why.reason() })).collect::<Vec<_>>(),
    }));
    Ok(Exit::Done)
}

/// Every tracked file that a model should see, in git's order, as it is on disk now.
pub fn roll_up(tree: &WorkTree) -> Result<RollUp, Failure> {
    let tracked = tree.tracked().map_err(|error| Failure::refused(error, "see what git status says"))?;
    let mut rollup = RollUp { text: Vec::new(), files: 0, left_out: Vec::new() };
    for file in tracked {
        let on_disk = tree.root().join(&file.path);
        // Deleted, or a link or folder by now: git tracks it, but there is nothing to show.
        let Ok(found) = fs::symlink_metadata(&on_disk) else { continue };
        if !found.is_file() {
            continue;
        }
        if let Some(why) = left_out_by_name(&file.path, found.len()) {
            rollup.left_out.push((file.path, why));
            continue;
        }
        let content = fs::read(&on_disk).with_context(|| format!("cannot read {}", file.path))?;
        match append(&mut rollup.text, &file.path, &content).context("cannot grow the roll-up")? {
            Ok(()) => rollup.files += 1,
            Err(why) => rollup.left_out.push((file.path, why)),
        }
    }
    Ok(rollup)
}

/// Through a temporary file, so that a roll-up is never half written.
fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = (|| {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text)?;
        file.persist(path).map_err(|error| error.error)
    })();
    written.map(drop).with_context(|| format!("cannot write {}", path.display())).map_err(|error| {
        Failure::refused(
            error,
            format!("see that {AGENT_CONFIG} can be written, or name another file with --output"),
        )
    })
}
