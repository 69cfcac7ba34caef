//! `code-commit import`: a run of another clone comes into this one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_bundle::{Item, Manifest, Survey};
use code_commit_dir::Folder;
use code_commit_engine::Stored;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_repo::WorkTree;
use code_commit_report::{Output, printable};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::records::{self, IMPORTED};
use crate::registry::{Imported, Known, RUN_JSON, Registry};
use crate::staging::Staging;
use crate::travel::about::About;
use crate::travel::export::stays_behind;
use crate::travel::signature::{Signed, allowed_by_git};
use crate::travel::verify::{Checked, checked, in_words};
use crate::{lock, place};

/// Which file, and whether to believe it.
#[derive(Debug)]
pub struct Request {
    /// The bundle.
    pub file: PathBuf,
    /// Whose signatures count; git's own list if not given.
    pub allowed_signers: Option<PathBuf>,
    /// Believe it whoever made it.
    pub trust: bool,
}

/// Checks the bundle and puts its run beside those that were made here.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let tree = place::work_tree(host.here()?)?;
    let _lock = lock::take(&tree, host)?;
    let allowed = args
        .allowed_signers
        .clone()
        .or_else(|| allowed_by_git(host));
    let refused = |error: anyhow::Error| {
        let error = error.context(format!("{} was not imported", args.file.display()));
        Failure::refused(
            error,
            format!(
                "code-commit verify {} says the same; get it anew",
                args.file.display()
            ),
        )
    };
    // Beside the runs that were imported: what is unpacked becomes one of them by a rename.
    let base = place::state(&tree)?.join(IMPORTED);
    let writable = "make the folder writable";
    let aside = Staging::beside(&base).map_err(|error| Failure::refused(error, writable))?;
    let Checked {
        about,
        signed,
        manifest,
        ..
    } = checked(&args.file, aside.around(), allowed.as_deref(), host).map_err(refused)?;
    let believed = match (&signed, args.trust) {
        (Signed::By(who), _) => Some(who.clone()),
        (_, true) => Some("--trust".to_owned()),
        (_, false) => None,
    };
    if let Some(there) = twin(&about, &manifest, &tree)? {
        let folder = there.path(tree.root());
        let believed = believed.or_else(|| there.vouched_for());
        Registry::of(&tree).believe(&folder, believed.as_ref())?;
        tell(&about, &folder, Imported { believed }, &signed, output);
        return Ok(Exit::Done);
    }
    let target = RunFolder::choose(&base, &about.run, Redactor::default())
        .map_err(|error| Failure::refused(error, writable))?;
    let imported = Imported { believed };
    Registry::of(&tree).import(target.path(), plan(aside.path())?, imported.clone())?;
    aside
        .put(target.path())
        .map_err(|error| Failure::refused(error, writable))?;
    tell(&about, target.path(), imported, &signed, output);
    Ok(Exit::Done)
}

/// The run of this record, if it is here already: its replies would count twice. Every file has to be the same, since who
/// vouches for this one vouches for all of them. One that came without its prompts does not stand for one that has
/// them.
fn twin(about: &About, manifest: &Manifest, tree: &WorkTree) -> Result<Option<Known>, Failure> {
    let mut imported = Registry::of(tree)
        .with_imported()?
        .into_iter()
        .filter(Known::is_imported);
    let all = |files: &[Item], withheld: &[Item]| -> BTreeSet<Item> {
        files.iter().chain(withheld).cloned().collect()
    };
    let wanted = all(&manifest.files, &manifest.withheld);
    Ok(imported.find(|known| {
        let run = known.path(tree.root());
        let is_same =
            || About::of(&records::open(&run), &about.run).is_ok_and(|there| there == *about);
        let has_same_files = || {
            let mut there = Folder::open(&run)
                .ok()
                .and_then(|folder| Survey::of(&folder).ok())?;
            stays_behind(&run, &mut there);
            let lacks_more = there
                .withheld
                .iter()
                .any(|file| !manifest.withheld.contains(file));
            Some(
                !lacks_more
                    && there.left_out.is_empty()
                    && all(&there.files, &there.withheld) == wanted,
            )
        };
        is_same() && has_same_files() == Some(true)
    }))
}

fn tell(about: &About, folder: &Path, imported: Imported, signed: &Signed, output: &Output) {
    let (name, Imported { believed }) = (records::name(folder), imported);
    output.object(&json!({
        "event": "imported", "run": name, "folder": folder.to_string_lossy(), "about": about,
        "believed": believed,
    }));
    output.report(&format!(
        "{name}: {}, {}",
        printable(&about.line()),
        printable(&in_words(signed))
    ));
    if believed.is_none() {
        output.note(
            "not signed by a trusted signer: it can be shown and replayed, and its replies are used again; \
             --trust believes the rest",
        );
    }
}

fn plan(unpacked: &Path) -> Result<Stored, Failure> {
    let plan = code_commit_dir::read(
        &unpacked.join(RUN_JSON),
        u64::MAX,
        code_commit_dir::Links::Refused,
    );
    let plan = plan
        .ok()
        .flatten()
        .ok_or_else(|| anyhow!("{RUN_JSON} is gone"))?;
    let (bytes, sha256) = (plan.len() as u64, code_commit_logging::sha256_hex(&plan));
    Ok(Stored {
        file: RUN_JSON.to_owned(),
        bytes,
        sha256,
    })
}
