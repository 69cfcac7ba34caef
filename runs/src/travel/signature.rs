//! Signatures as git makes them: by `ssh-keygen -Y`, so that keys in an agent or on a token work, and a file of
//! allowed signers means what it means to git.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use code_commit_runner::{Cancel, Command, Confinement, Ended, Env, NoProgram, Output, Streams};
use code_commit_settings::Environment;

use crate::host::Host;

/// What the signature is for: one that was made for something else does not count.
const NAMESPACE: &str = "code-commit-run";
/// How long a token may wait for a finger.
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs `ssh-keygen` in a folder of its own.
pub(super) struct Signer<'s> {
    program: Result<PathBuf, NoProgram>,
    environment: Environment,
    scratch: &'s Path,
}

/// Whether the user knows who signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signed {
    /// One of the allowed signers.
    By(String),
    /// There is no signature.
    No,
    /// The signature is of something else, or damaged.
    Bad,
    /// Somebody signed, but nobody of the allowed signers, or not for this purpose or at this time.
    Unknown,
    /// There is a signature, and no list of allowed signers.
    Unchecked,
}

/// There is a signature, but nothing here that can judge it. That says nothing about the bundle.
#[derive(Debug)]
pub(super) struct CannotJudge(String);

impl std::error::Error for CannotJudge {}

impl std::fmt::Display for CannotJudge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot judge the signature: {}", self.0)
    }
}

impl<'s> Signer<'s> {
    /// `scratch` is removed by the caller.
    pub(super) fn new(host: Host<'_>, scratch: &'s Path) -> Self {
        let trusted = host.trusted();
        let program = trusted.programs().find("ssh-keygen");
        Self {
            program,
            environment: trusted.environment().clone(),
            scratch,
        }
    }

    /// Signs with a private key that has no passphrase, or with one that an agent holds.
    pub(super) fn sign(&self, manifest: &[u8], key: &Path) -> anyhow::Result<Vec<u8>> {
        let file = self.keep("manifest", manifest)?;
        let argv = ["-Y", "sign", "-n", NAMESPACE, "-f"].map(OsString::from);
        let done = self.run(
            argv.into_iter().chain([key.into(), file.clone().into()]),
            None,
        )?;
        if !done.success() {
            bail!(
                "ssh-keygen cannot sign with {}: {} (a key with a passphrase has to be in an agent: ssh-add {0})",
                key.display(),
                last_line(&done)
            );
        }
        let signature = file.with_extension("sig");
        std::fs::read(&signature).with_context(|| format!("cannot read {}", signature.display()))
    }

    /// Who made this signature of the manifest, according to the list.
    pub(super) fn judge(
        &self,
        manifest: &[u8],
        signature: Option<&[u8]>,
        allowed: Option<&Path>,
    ) -> anyhow::Result<Signed> {
        let Some(signature) = signature else {
            return Ok(Signed::No);
        };
        let Some(allowed) = allowed else {
            return Ok(Signed::Unchecked);
        };
        std::fs::File::open(allowed)
            .map_err(|error| CannotJudge(format!("cannot read {}: {error}", allowed.display())))?;
        let (file, signature) = (
            self.keep("manifest", manifest)?,
            self.keep("signature", signature)?,
        );
        let argv = |words: &[&str], more: &[&Path]| -> Vec<OsString> {
            words
                .iter()
                .map(OsString::from)
                .chain(more.iter().map(OsString::from))
                .collect()
        };
        let intact = argv(
            &["-Y", "check-novalidate", "-n", NAMESPACE, "-s"],
            &[&signature],
        );
        if !self.says_yes(intact, Some(&file))?.0 {
            return Ok(Signed::Bad);
        }
        let listed = argv(
            &["-Y", "find-principals", "-s"],
            &[&signature, Path::new("-f"), allowed],
        );
        let (is_listed, names) = self.says_yes(listed, None)?;
        for who in names.lines().filter(|who| is_listed && !who.is_empty()) {
            let words = ["-Y", "verify", "-n", NAMESPACE, "-I", who, "-f"];
            let verified = argv(&words, &[allowed, Path::new("-s"), &signature]);
            if self.says_yes(verified, Some(&file))?.0 {
                return Ok(Signed::By(who.to_owned()));
            }
        }
        Ok(Signed::Unknown)
    }

    /// Whether `ssh-keygen` agrees, and what it prints.
    fn says_yes(
        &self,
        argv: Vec<OsString>,
        input: Option<&Path>,
    ) -> anyhow::Result<(bool, String)> {
        if let Err(missing) = &self.program {
            return Err(CannotJudge(format!("{missing}; it comes with OpenSSH")).into());
        }
        let done = self.run(argv, input.map(Path::to_owned))?;
        let text = done.apart.map(|apart| apart.out.text()).unwrap_or_default();
        if let Ended::Exited(code) = done.ended {
            return Ok((code == 0, text));
        }
        Err(CannotJudge(format!("ssh-keygen {}", done.ended)).into())
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.scratch.join(name);
        code_commit_dir::replace(&path, bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn run(
        &self,
        argv: impl IntoIterator<Item = OsString>,
        input: Option<PathBuf>,
    ) -> anyhow::Result<Output> {
        let agent = ["SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY"].map(OsString::from);
        let env = Env::allowed(self.environment.all().clone(), &agent);
        let program = self
            .program
            .clone()
            .context("cannot start ssh-keygen, which comes with OpenSSH")?;
        let argv = [program.into_os_string()].into_iter().chain(argv);
        let command = Command {
            input,
            deadline: Some(PATIENCE),
            streams: Streams::Apart,
            ..Command::new(argv, self.scratch, env)
        };
        let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
        code_commit_runner::run(&command, &Confinement::off(), &cancel, &mut |_, _| {}).map_err(
            |error| anyhow!(error).context("cannot start ssh-keygen, which comes with OpenSSH"),
        )
    }
}

/// The file that git uses, if the user's own configuration names one. A repository cannot choose whom the user
/// believes.
pub(super) fn allowed_by_git(host: Host<'_>) -> Option<PathBuf> {
    let trusted = host.trusted();
    let words = [
        "config",
        "--global",
        "--path",
        "--get",
        "gpg.ssh.allowedSignersFile",
    ]
    .map(OsString::from);
    let argv = [trusted.programs().find("git").ok()?.into_os_string()]
        .into_iter()
        .chain(words);
    let env = Env::allowed(trusted.environment().all().clone(), &[]);
    let command = Command {
        deadline: Some(Duration::from_secs(10)),
        ..Command::new(argv, "/", env)
    };
    let done = code_commit_runner::run(
        &command,
        &Confinement::off(),
        &Cancel::new().ok()?,
        &mut |_, _| {},
    )
    .ok()?;
    let text = done.text();
    text.lines()
        .next()
        .filter(|line| done.success() && !line.is_empty())
        .map(PathBuf::from)
}

fn last_line(done: &Output) -> String {
    let text = done.text();
    let line = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    line.map_or_else(|| format!("it {}", done.ended), str::to_owned)
}
