//! `code-commit rollup`: writes the tracked files as one text for the model.

mod on_disk;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use logging::{Redactor, name_as_text};
use names::ours::AGENT_CONFIG;
use prompt::rollup::{LeftOut, append};
use repo::{Besides, Tracked, WorkTree};
use report::{Output, phrases, printable_name};
use runs::{Exit, Failure, Host, place, preflight};
use serde_json::json;
use settings::Keys;

use self::on_disk::{Found, OnDisk};
use crate::args::RollupArgs;

/// Omitted files named in a message.
const NAMED_FILES: usize = 10;
/// Symlinks and non-UTF-8 names named in a message.
const NAMED_LINKS: usize = 5;

/// A roll-up in memory.
pub struct RollUp {
    pub text: Vec<u8>,
    pub files: usize,
    pub left_out: Vec<(String, LeftOut)>,
    /// Files in it that contain a key: no run sends it.
    pub with_key: Vec<String>,
    /// Entries that are not regular files with a name that a model could write.
    pub besides: Besides,
}

impl RollUp {
    fn add(&mut self, path: String, content: &[u8], redactor: &Redactor) -> Result<(), Failure> {
        match append(&mut self.text, &path, content).context("cannot grow the roll-up")? {
            Err(why) => self.left_out.push((path, why)),
            Ok(()) => {
                self.files += 1;
                if redactor.finds_key(content) {
                    self.with_key.push(path);
                }
            }
        }
        Ok(())
    }
}

/// Writes the roll-up, and reports what it contains and omits.
pub fn run(args: &RollupArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let Host { environment, output, .. } = host;
    let tree = place::work_tree(place::here(host)?)?;
    if args.output.starts_with(AGENT_CONFIG) {
        preflight::own_or_absent(tree.root())
            .map_err(|link| Failure::refused(anyhow!(link.what), link.hint))?;
    }
    let redactor = output.strike_out(Keys::find(environment, tree.root()).exposed());
    let rollup = roll_up(&tree, &redactor)?;
    if args.output == Path::new("-") {
        output.raw(&rollup.text);
    } else {
        if args.output.starts_with(AGENT_CONFIG) {
            preflight::own_folder(tree.root())
                .map_err(|error| Failure::refused(error, "name another file with --output"))?;
        }
        write(&tree.root().join(&args.output), &rollup.text)?;
        let size = phrases::bytes(rollup.text.len() as u64);
        let files = phrases::count(rollup.files as u64, "file");
        output.report(&format!("{}: {files}, {size}", args.output.display()));
    }
    say_left_out(&rollup.left_out, output);
    let odd: Vec<String> =
        rollup.besides.not_utf8.iter().map(|path| name_as_text(path).into_owned()).collect();
    warn_of(&rollup.besides.links, "symbolic links", output);
    warn_of(&odd, "names that are not UTF-8", output);
    if !rollup.with_key.is_empty() {
        let first = phrases::first(&rollup.with_key, NAMED_LINKS);
        output.warn(&format!(
            "{first}: contains an API key, so the next run will not send this roll-up; remove the key"
        ));
    }
    if rollup.files == 0 {
        output.warn("git tracks no files here, so the model would see none: git add the project's files");
    }
    let left_out = rollup.left_out.iter().map(|(path, why)| (path, why.reason()));
    let links = rollup.besides.links.iter().map(|path| (path, "a symlink"));
    let odd = odd.iter().map(|path| (path, "its name is not UTF-8"));
    output.object(&json!({
        "files": rollup.files, "bytes": rollup.text.len(),
        "left_out": left_out.chain(links).chain(odd)
            .map(|(path, reason)| json!({ "path": path, "reason": reason })).collect::<Vec<_>>(),
    }));
    Ok(Exit::Done)
}

/// Surprising omissions come first and are always named.
fn say_left_out(left_out: &[(String, LeftOut)], output: &Output) {
    let (unexpected, expected): (Vec<_>, Vec<_>) =
        left_out.iter().partition(|(_, why)| matches!(why, LeftOut::TooLarge | LeftOut::HoldsSecret(_)));
    let line =
        |(path, why): &(String, LeftOut)| format!("left out: {} ({})", printable_name(path), why.reason());
    unexpected.iter().for_each(|file| output.warn(&line(file)));
    expected.iter().take(NAMED_FILES).for_each(|file| output.note(&line(file)));
    if expected.len() > NAMED_FILES {
        output.note(&format!("left out: {} more", expected.len() - NAMED_FILES));
    }
}

/// One line for all files of a kind, naming the first ones.
fn warn_of(names: &[String], kind: &str, output: &Output) {
    if names.is_empty() {
        return;
    }
    let first = phrases::first(names, NAMED_LINKS);
    output.warn(&format!("left out: {first} ({kind}: {})", names.len()));
}

/// Every tracked file that a model should see, in git's order, as it is on disk. The redactor knows the keys
/// to look for.
pub fn roll_up(tree: &WorkTree, redactor: &Redactor) -> Result<RollUp, Failure> {
    let (tracked, besides) = (tree.tracked()?, tree.besides()?);
    let mut rollup =
        RollUp { text: Vec::new(), files: 0, left_out: Vec::new(), with_key: Vec::new(), besides };
    let on_disk =
        OnDisk::at(tree.root()).map_err(|error| Failure::refused(error, "make the folder readable"))?;
    let mut content = Vec::new();
    for Tracked { path, .. } in tracked {
        let found = on_disk
            .read(&path, &mut content)
            .with_context(|| format!("cannot read {path}"))
            .map_err(|error| Failure::refused(error, "make it readable, or stop tracking it with git"))?;
        match found {
            Found::Content => rollup.add(path, &content, redactor)?,
            Found::LeftOut(why) => rollup.left_out.push((path, why)),
            Found::Link => rollup.besides.links.push(path),
            Found::Other => (),
        }
    }
    Ok(rollup)
}

/// Writes through a temporary file, so that a roll-up is never half-written.
fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = (|| {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text)?;
        file.persist(path).map_err(|error| error.error)
    })();
    written.map(drop).with_context(|| format!("cannot write {}", path.display())).map_err(|error| {
        Failure::refused(error, format!("make {AGENT_CONFIG} writable, or name another file with --output"))
    })
}
