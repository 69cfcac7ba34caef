//! `code-commit export`: a run as one file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_bundle::{Item, Manifest, Survey};
use code_commit_dir::Folder;
use code_commit_engine::Stored;
use code_commit_logging::{Journal, Redactor};
use code_commit_perform::{JOURNAL, Past, WITHHELD};
use code_commit_report::{phrases, printable};
use code_commit_settings::Keys;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::phase::agents::Secrets;
use crate::records;
use crate::site::Site;
use crate::travel::about::About;
use crate::travel::signature::Signer;
use crate::travel::verify::scratch;

/// Which run goes where.
#[derive(Debug)]
pub struct Request {
    /// The run, by the name of its folder or by its path; the newest if not named.
    pub run: Option<String>,
    /// The file to write.
    pub file: PathBuf,
    /// The key that signs: a private one, or the public one of a key that an agent holds.
    pub sign: Option<PathBuf>,
    /// Leave the prompts out, but for their hashes: they hold the code.
    pub without_prompts: bool,
}

/// Packs a run. The run may go on meanwhile, if no harness works on it.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::here(host)?;
    let run = site.registry().find(args.run.as_deref())?.path(&site.root);
    let name = records::name(&run);
    let cannot = |error: anyhow::Error| {
        let help = format!(
            "what is recorded is in {}; nothing was written",
            run.display()
        );
        Failure::refused(error.context(format!("cannot export {name}")), help)
    };
    if Journal::is_in_use(&run.join(JOURNAL)).map_err(|error| cannot(error.into()))? {
        let error = anyhow!("another code-commit works on {name}");
        return Err(Failure::refused(error, "wait until it has ended"));
    }
    let about = About::of(&records::open(&run), &name).map_err(cannot)?;
    let folder = Folder::open(&run).map_err(|error| cannot(error.into()))?;
    let survey = Survey::of(&folder).map_err(|error| cannot(error.into()))?;
    let prompts = if args.without_prompts {
        prompts(&run).map_err(cannot)?
    } else {
        Vec::new()
    };
    let mut survey = survey.without(|file| prompts.iter().any(|prompt| prompt == file));
    stays_behind(&run, &mut survey);
    holds_no_key(&run, &folder, &survey, host)?;
    let manifest = Manifest::new(serde_json::to_value(&about).context("the record")?, survey);
    write(&folder, &manifest, args, host).map_err(cannot)?;
    tell(&manifest, &about, args, host);
    Ok(Exit::Done)
}

/// What stayed behind when this record came here does not come back: the manifest says so, and the note stays.
pub(super) fn stays_behind(run: &Path, survey: &mut Survey) {
    survey.files.retain(|item| item.name != WITHHELD);
    let withheld = code_commit_perform::withheld(&records::open(run));
    survey.withheld.extend(withheld.into_iter().map(
        |Stored {
             file,
             bytes,
             sha256,
         }| Item {
            name: file,
            bytes,
            sha256,
        },
    ));
    survey.withheld.sort();
}

/// The files that hold prompts, according to the journal.
fn prompts(run: &Path) -> anyhow::Result<Vec<String>> {
    let past = Past::read(run)?;
    Ok(past.prompts().map(|stored| stored.file).collect())
}

/// Pre-images are raw: they hold what was in the files of the project.
fn holds_no_key(
    run: &Path,
    folder: &Folder,
    survey: &Survey,
    host: Host<'_>,
) -> Result<(), Failure> {
    let root = host.root()?;
    let (keys, secrets) = (Keys::find(host.environment, &root), Secrets::read(&root)?);
    let redactor = Redactor::new(keys.exposed().chain(secrets.exposed()));
    for item in &survey.files {
        let path = Path::new(&item.name);
        let file = folder.open_file_below(path).ok().flatten();
        let found = file.map_or(Ok(false), |file| holds_key(file, &redactor));
        let found = found.with_context(|| format!("cannot read {}", run.join(path).display()))?;
        if found {
            let error = anyhow!(
                "{} holds an API key; nothing was exported",
                run.join(path).display()
            );
            return Err(Failure::refused(
                error,
                "revoke that key, or remove the file if it is only a copy",
            ));
        }
    }
    Ok(())
}

/// Bytes that are searched at once, and how many of them are searched again with the next: a key is shorter.
const AT_ONCE: u64 = 16 << 20;
const AGAIN: usize = 16 << 10;

fn holds_key(mut file: File, redactor: &Redactor) -> std::io::Result<bool> {
    let mut window = Vec::new();
    while file.by_ref().take(AT_ONCE).read_to_end(&mut window)? > 0 {
        if redactor.finds_key(&window) {
            return Ok(true);
        }
        window.drain(..window.len().saturating_sub(AGAIN));
    }
    Ok(false)
}

fn write(
    folder: &Folder,
    manifest: &Manifest,
    args: &Request,
    host: Host<'_>,
) -> anyhow::Result<()> {
    let bytes = manifest.to_bytes();
    let scratch = scratch().map_err(|failure| failure.error)?;
    let signer = Signer::new(host, scratch.path());
    let key = args.sign.as_deref().map(std::path::absolute).transpose()?;
    let signature = key.map(|key| signer.sign(&bytes, &key)).transpose()?;
    let written = code_commit_dir::replace_with(&args.file, |file| {
        code_commit_bundle::pack(folder, &bytes, signature.as_deref(), file)
            .map_err(std::io::Error::other)
    });
    written.with_context(|| format!("cannot write {}", args.file.display()))
}

fn tell(manifest: &Manifest, about: &About, args: &Request, host: Host<'_>) {
    let output = host.output;
    let (files, withheld) = (manifest.files.len(), manifest.withheld.len());
    output.object(&json!({
        "event": "exported", "file": args.file.to_string_lossy(), "about": about, "files": files,
        "withheld": withheld, "left_out": manifest.left_out, "signed": args.sign.is_some(),
    }));
    if !manifest.left_out.is_empty() {
        let names = phrases::first(&manifest.left_out, 5);
        output.warn(&format!(
            "left out, since it is no regular file or has no name in UTF-8: {}",
            printable(&names)
        ));
    }
    let without = if withheld == 0 {
        String::new()
    } else {
        format!(", without {withheld} prompts")
    };
    output.report(&format!(
        "{}: {}, {}{without}",
        printable(&args.file.display().to_string()),
        about.line(),
        phrases::count(files as u64, "file")
    ));
}
