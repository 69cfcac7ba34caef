//! `code-commit verify`: whether a bundle is what somebody packed, and who vouches for it. Needs no network
//! and no project.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use code_commit_bundle::{Item, Manifest, Opened};
use code_commit_dir::Folder;
use code_commit_engine::Stored;
use code_commit_report::{BAD, GOOD, printable};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::records;
use crate::travel::about::About;
use crate::travel::signature::{CannotJudge, Signed, Signer};

/// Which file, and whose signatures count.
#[derive(Debug)]
pub struct Request {
    /// The bundle.
    pub file: PathBuf,
    /// Whose signatures count; if given, there has to be one.
    pub allowed_signers: Option<PathBuf>,
}

/// A bundle whose every hash is right.
pub(super) struct Checked {
    pub(super) about: About,
    pub(super) manifest: Manifest,
    pub(super) signed: Signed,
    pub(super) sha256: String,
}

/// Says whether the file is intact.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let scratch = scratch()?;
    let checked = checked(
        &args.file,
        scratch.path(),
        args.allowed_signers.as_deref(),
        host,
    );
    let vouched = |checked: Checked| {
        let is_vouched_for =
            args.allowed_signers.is_none() || matches!(checked.signed, Signed::By(_));
        ensure!(
            is_vouched_for,
            "{}: {}",
            checked.about.line(),
            in_words(&checked.signed)
        );
        Ok(checked)
    };
    let file = printable(&args.file.display().to_string());
    match checked.and_then(vouched) {
        Ok(checked) => {
            let Checked {
                about,
                manifest,
                signed,
                sha256,
            } = checked;
            let by = if let Signed::By(who) = &signed {
                Some(who)
            } else {
                None
            };
            output.object(&json!({
                "event": "verified", "ok": true, "about": about, "files": manifest.files.len(),
                "withheld": manifest.withheld.len(), "signed_by": by, "sha256": sha256,
            }));
            let intact = output.paint(GOOD, "intact");
            output.report(&format!(
                "{intact}: {}, {}",
                printable(&about.line()),
                printable(&in_words(&signed))
            ));
            Ok(Exit::Done)
        }
        Err(error) if error.is::<CannotJudge>() => Err(Failure::refused(
            error,
            "without --allowed-signers only the hashes and the record are checked",
        )),
        Err(error) => {
            let why = format!("{error:#}");
            output.object(&json!({ "event": "verified", "ok": false, "why": why }));
            let refused = output.paint(BAD, "refused");
            output.report(&format!("{refused}: {file}: {}", printable(&why)));
            Ok(Exit::Failed)
        }
    }
}

/// A folder for what comes out of a bundle or goes into one, removed when it is dropped or, if this is killed, by
/// the next that is made.
pub(super) fn scratch() -> Result<code_commit_runner::TemporaryFolder, Failure> {
    let made = code_commit_runner::temporary_folder(&std::env::temp_dir())
        .context("cannot make a temporary folder");
    made.map_err(|error| {
        Failure::refused(error, "see that TMPDIR or /tmp is writable and has space")
    })
}

/// Unpacks the bundle into a folder below `scratch` and checks everything: every byte, every file that the
/// journal names, the chain of its lines, and what the manifest says of them.
pub(super) fn checked(
    file: &Path,
    scratch: &Path,
    allowed: Option<&Path>,
    host: Host<'_>,
) -> anyhow::Result<Checked> {
    let mut bundle = File::open(file).context("cannot read it")?;
    ensure!(
        bundle.metadata().context("cannot read it")?.is_file(),
        "it is not a regular file"
    );
    let run = run_folder(scratch);
    std::fs::create_dir(&run).context("cannot unpack it")?;
    let into = Folder::open(&run).context("cannot unpack it")?;
    let Opened {
        manifest,
        manifest_bytes,
        signature,
        sha256,
    } = code_commit_bundle::open(&mut bundle, Some(&into))?;
    let said = About::read(&manifest.about)?;
    // The note about what stayed behind is ours: a bundle could excuse any missing file with one of its own.
    ensure!(
        !manifest
            .files
            .iter()
            .any(|item| item.name == code_commit_perform::WITHHELD),
        "it brings a {} of its own",
        code_commit_perform::WITHHELD
    );
    let withheld = manifest.withheld.iter().cloned();
    let withheld: Vec<Stored> = withheld
        .map(
            |Item {
                 name: file,
                 bytes,
                 sha256,
             }| Stored {
                file,
                bytes,
                sha256,
            },
        )
        .collect();
    code_commit_perform::note_withheld(&run, &withheld).context("cannot unpack it")?;
    let about = About::of(&records::open(&run), &said.run).context("its record is not intact")?;
    ensure!(
        about == said,
        "its manifest does not say what its record says"
    );
    let work = scratch.join("signature");
    std::fs::create_dir(&work).context("cannot check its signature")?;
    let allowed = allowed.map(std::path::absolute).transpose()?;
    let signer = Signer::new(host, &work);
    let signed = signer.judge(&manifest_bytes, signature.as_deref(), allowed.as_deref())?;
    ensure!(signed != Signed::Bad, "{}", in_words(&signed));
    Ok(Checked {
        about,
        manifest,
        signed,
        sha256,
    })
}

/// Where the run is unpacked to.
pub(super) fn run_folder(scratch: &Path) -> PathBuf {
    scratch.join("run")
}

pub(super) fn in_words(signed: &Signed) -> String {
    match signed {
        Signed::By(who) => format!("signed by {who}"),
        Signed::No => "not signed".to_owned(),
        Signed::Bad => "its signature is not one of its manifest".to_owned(),
        Signed::Unknown => "signed by nobody in the list of allowed signers".to_owned(),
        Signed::Unchecked => "signed; --allowed-signers FILE says by whom".to_owned(),
    }
}
