//! Compares the public interface of each library, as rustdoc's JSON has it, with the file that keeps it; with `API_UPDATE=1`,
//! writes the file. Usage: `public-api JSON_FOLDER KEPT_FOLDER`.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folders: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [json, kept] = &folders[..] else { return Err("usage: public-api JSON_FOLDER KEPT_FOLDER".into()) };
    let (now, before) = (names(json, "json")?, names(kept, "txt")?);
    let is_update = env::var_os("API_UPDATE").is_some_and(|value| value == "1");
    let mut changed = false;
    for name in now.union(&before) {
        let path = kept.join(name).with_extension("txt");
        let old = fs::read_to_string(&path).unwrap_or_default();
        let new = if now.contains(name) {
            interface(&json.join(name).with_extension("json"))?
        } else {
            String::new()
        };
        if old == new {
            continue;
        }
        println!("{}:\n{}", path.display(), difference(&old, &new));
        changed = true;
        match (is_update, new.is_empty()) {
            (true, true) => fs::remove_file(path)?,
            (true, false) => fs::write(path, new)?,
            (false, _) => {}
        }
    }
    if changed && !is_update {
        eprintln!(
            "The public interface changed. If that is intended, run API_UPDATE=1 tools/public-api/run.sh and commit the files."
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of our libraries that have a file with this extension.
fn names(folder: &Path, extension: &str) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name =
            path.file_stem().and_then(|stem| stem.to_str()).filter(|name| name.starts_with("code_commit_"));
        if path.extension().is_some_and(|found| found == extension) {
            names.extend(name.map(str::to_owned));
        }
    }
    Ok(names)
}

/// An item a line. Derived implementations and those that the compiler adds are left out: they would hide the rest.
fn interface(json: &Path) -> Result<String, Box<dyn Error>> {
    let builder =
        public_api::Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true);
    let interface = builder.omit_auto_derived_impls(true).build()?;
    Ok(interface.items().map(|item| format!("{item}\n")).collect())
}

/// Lines that went, then lines that came.
fn difference(old: &str, new: &str) -> String {
    let only = |sign: char, text: &str, other: &str| -> String {
        let other: BTreeSet<&str> = other.lines().collect();
        let lines = text.lines().filter(|line| !other.contains(line));
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    only('-', old, new) + &only('+', new, old)
}
