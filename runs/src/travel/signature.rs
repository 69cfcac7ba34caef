//! Signatures as git makes them: by `ssh-keygen -Y`, so that keys in an agent or on a token work, and a file of
//! allowed signers means what it means to git.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use runner::{Cancel, Command, Confinement, Env, Output, Streams};
use settings::Environment;

/// What the signature is for: one that was made for something else does not count.
const NAMESPACE: &str = "code-commit-run";
/// How long a token may wait for a finger.
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs `ssh-keygen` in a folder of its own.
pub(super) struct Signer<'s> {
    environment: &'s Environment,
    scratch: &'s Path,
}

/// Whether the user knows who signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signed {
    /// One of the allowed signers.
    By(String),
    /// There is no signature.
    No,
    /// Somebody signed, but nobody of the allowed signers; or the signature is of something else.
    Unknown,
    /// There is a signature, and no list of allowed signers.
    Unchecked,
}

impl<'s> Signer<'s> {
    /// `scratch` is removed by the caller.
    pub(super) fn new(environment: &'s Environment, scratch: &'s Path) -> Self {
        Self { environment, scratch }
    }

    /// Signs with a private key, or with the public key of one that an agent holds.
    pub(super) fn sign(&self, manifest: &[u8], key: &Path) -> anyhow::Result<Vec<u8>> {
        let file = self.keep("manifest", manifest)?;
        let argv = ["-Y", "sign", "-n", NAMESPACE, "-f"].map(OsString::from);
        let done = self.run(argv.into_iter().chain([key.into(), file.clone().into()]), None)?;
        if !done.success() {
            bail!("ssh-keygen cannot sign with {}: {}", key.display(), last_line(&done));
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
        let Some(signature) = signature else { return Ok(Signed::No) };
        let Some(allowed) = allowed else { return Ok(Signed::Unchecked) };
        std::fs::File::open(allowed).with_context(|| format!("cannot read {}", allowed.display()))?;
        let (file, signature) = (self.keep("manifest", manifest)?, self.keep("signature", signature)?);
        let list = |verb: &str| {
            let words = ["-Y", verb, "-n", NAMESPACE, "-f"].map(OsString::from);
            words
                .into_iter()
                .chain([allowed.into(), "-s".into(), signature.clone().into()])
                .collect::<Vec<_>>()
        };
        let found = self.run(list("find-principals"), None)?;
        let text = found.text();
        let Some(who) = text.lines().next().filter(|who| found.success() && !who.is_empty()) else {
            return Ok(Signed::Unknown);
        };
        let more = ["-I".into(), OsString::from(who)];
        let verified = self.run(list("verify").into_iter().chain(more), Some(file))?;
        Ok(if verified.success() { Signed::By(who.to_owned()) } else { Signed::Unknown })
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.scratch.join(name);
        dir::replace(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn run(
        &self,
        argv: impl IntoIterator<Item = OsString>,
        input: Option<PathBuf>,
    ) -> anyhow::Result<Output> {
        let agent = ["SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY"].map(OsString::from);
        let env = Env::allowed(self.environment.all().clone(), &agent);
        let argv = [OsString::from("ssh-keygen")].into_iter().chain(argv);
        let command = Command {
            input,
            deadline: Some(PATIENCE),
            streams: Streams::Merged,
            ..Command::new(argv, self.scratch, env)
        };
        let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
        runner::run(&command, &Confinement::off(), &cancel, &mut |_, _| {})
            .map_err(|error| anyhow!(error).context("cannot start ssh-keygen, which comes with OpenSSH"))
    }
}

/// The file that git uses, if the user's own configuration names one. A repository cannot choose whom the user
/// believes.
pub(super) fn allowed_by_git(environment: &Environment) -> Option<PathBuf> {
    let argv = ["git", "config", "--global", "--path", "--get", "gpg.ssh.allowedSignersFile"];
    let env = Env::allowed(environment.all().clone(), &[]);
    let command = Command { deadline: Some(Duration::from_secs(10)), ..Command::new(argv, "/", env) };
    let done = runner::run(&command, &Confinement::off(), &Cancel::new().ok()?, &mut |_, _| {}).ok()?;
    let text = done.text();
    text.lines().next().filter(|line| done.success() && !line.is_empty()).map(PathBuf::from)
}

fn last_line(done: &Output) -> String {
    let text = done.text();
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| format!("it {}", done.ended), str::to_owned)
}
