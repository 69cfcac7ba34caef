//! What an engine starts, once a task: one order, from the clone to its result. Started twice, stopped, killed, or on two machines at
//! once, the order has one result; nothing of value stays on the machine.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_llm::Provider;
use rustix::process::{Signal, getuid};
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::client::{Client, Failure};
use crate::git::{Group, Remote};
use crate::orders::Named;
use crate::proxy::Interrupt;
use crate::store::hex;
use crate::wire::{Attempt, Begin, Begun, Finish, Verdict, is_name};
use crate::{bundle, environment, proxy};

/// The order has its verdict.
const DONE: u8 = 0;
/// Trying again changes nothing.
const NEVER: u8 = 1;
/// `EX_TEMPFAIL`: trying again may help.
const AGAIN: u8 = 75;

/// Variables that the order's program inherits. None of them holds a token, a key, or a way to a credential.
const PASSED: [&str; 8] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "JAVA_HOME",
];
/// Clients ask for a key. The product takes a word this short for no secret, so it is redacted nowhere.
const NO_KEY: &str = "proxy";
/// Ends the program where the worker is killed: nobody would read its result.
const WITH_WORKER: [&str; 4] = ["setpriv", "--pdeathsig", "TERM", "--"];
/// How long the program may take to put its things away, of the ten seconds that the worker has.
const GRACE: Duration = Duration::from_secs(6);
/// Another attempt that voided this one gets this long; engines that started both would void one by the other for ever.
const OTHER: Duration = Duration::from_mins(10);
const GLANCE: Duration = Duration::from_secs(5);
/// Scratch folders, so that those of workers that were killed are found.
const SCRATCH: &str = "code-commit-work-";

/// Carries one order out.
#[derive(Debug, clap::Args)]
pub(crate) struct Work {
    /// The order's file
    order: PathBuf,
    /// The repository, by an address that git can clone and push to
    #[arg(long, value_name = "URL")]
    repo: String,
    /// A branch, a tag or a commit of it
    #[arg(long, value_name = "REV")]
    base: String,
    /// The model
    #[arg(long, env = "CODE_COMMIT_GATEWAY_MODEL", value_name = "PROVIDER/NAME")]
    model: String,
    /// Where `serve` listens
    #[arg(long, env = "CODE_COMMIT_GATEWAY_URL", value_name = "URL")]
    gateway: String,
    /// A file with the worker's token, if it is not in `CODE_COMMIT_GATEWAY_TOKEN`
    #[arg(long, env = "CODE_COMMIT_GATEWAY_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Refuse to work for another batch than this one
    #[arg(long)]
    batch: Option<String>,
    /// Mirrors of repositories [default: ~/.cache/code-commit-gateway]
    #[arg(long, env = "CODE_COMMIT_GATEWAY_CACHE", value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The program `code-commit`
    #[arg(
        long,
        default_value = "code-commit",
        env = "CODE_COMMIT_GATEWAY_PROGRAM",
        value_name = "FILE"
    )]
    program: PathBuf,
    /// More flags of `code-commit order run`
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

/// Marks an error that the next try has, too. All others are trouble of this machine or of the network.
#[derive(Debug, thiserror::Error)]
#[error("this will not change")]
struct Never;

fn never(error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(Never)
}

/// An order on this machine.
#[derive(Debug)]
struct Job {
    work: Work,
    client: Arc<Client>,
    content: Vec<u8>,
    name: String,
    remote: Remote,
    scratch: Scratch,
    interrupt: watch::Sender<Interrupt>,
}

impl Work {
    /// Its exit code is for the engine.
    pub(crate) fn run(self) -> ExitCode {
        let Err(error) = self.alone() else {
            return ExitCode::from(DONE);
        };
        let is_refused = matches!(error.downcast_ref(), Some(Failure::Never(_)));
        let code = if is_refused || error.is::<Never>() {
            NEVER
        } else {
            AGAIN
        };
        tracing::error!(code, error = format!("{error:#}"), "no verdict");
        ExitCode::from(code)
    }

    fn alone(self) -> anyhow::Result<()> {
        // The program dies with the thread that started it, so there is one thread.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build()?;
        let done = runtime.block_on(self.carry_out());
        runtime.shutdown_background();
        done
    }

    async fn carry_out(self) -> anyhow::Result<()> {
        let (interrupt, _) = watch::channel(Interrupt::None);
        let job = Job::new(self, interrupt.clone())?;
        let stop = async {
            environment::stopped().await;
            interrupt.send_replace(Interrupt::Stopped);
            // The program ends first.
            tokio::time::sleep(GRACE + Duration::from_secs(2)).await;
        };
        tokio::select! {
            done = job.until_result() => done,
            () = stop => anyhow::bail!("stopped"),
        }
    }
}

impl Job {
    fn new(work: Work, interrupt: watch::Sender<Interrupt>) -> anyhow::Result<Self> {
        let read = |file: &PathBuf| {
            let content =
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
            content.map_err(never)
        };
        let token = match &work.token_file {
            Some(file) => String::from_utf8(read(file)?).map_err(never)?,
            None => environment::variable("CODE_COMMIT_GATEWAY_TOKEN")
                .context("set CODE_COMMIT_GATEWAY_TOKEN, or name a --token-file")
                .map_err(never)?,
        };
        let content = read(&work.order)?;
        let order: Value = serde_json::from_slice(&content).map_err(never)?;
        let name = order
            .get("id")
            .and_then(Value::as_str)
            .filter(|name| is_name(name));
        let name = name.context("this is not an order with an `id` that can name a ref");
        let name = name.map_err(never)?.to_owned();
        let cache = work.cache.clone();
        let cache = cache.or_else(|| environment::folder("XDG_CACHE_HOME", ".cache"));
        let cache = cache.unwrap_or_else(|| std::env::temp_dir().join("code-commit-gateway"));
        sweep(&std::env::temp_dir());
        Ok(Self {
            client: Arc::new(Client::new(&work.gateway, token.trim()).map_err(never)?),
            remote: Remote::new(&work.repo, &cache).map_err(never)?,
            scratch: Scratch::new()?,
            work,
            content,
            name,
            interrupt,
        })
    }

    /// One attempt; where another one is newer, waits for its result.
    async fn until_result(&self) -> anyhow::Result<()> {
        let begin = Begin {
            batch: self.work.batch.clone(),
            order: self.name.clone(),
            content_sha256: hex(&Sha256::digest(&self.content)),
            base: self.base().await?,
        };
        let attempt = match self.client.send("/v1/begin", None, &begin).await? {
            Begun::Finished => return Ok(()),
            Begun::Attempt(attempt) => attempt,
        };
        tracing::info!(order = self.name, reference = attempt.reference, "begun");
        let done = self.attempt(&attempt).await;
        if *self.interrupt.borrow() == Interrupt::Void {
            tracing::warn!(
                order = self.name,
                "a newer attempt has begun; waiting for its result"
            );
            return tokio::time::timeout(OTHER, self.other()).await?;
        }
        if let Err(error) = &done {
            self.give_up(&attempt, format!("{error:#}")).await;
        }
        done
    }

    /// The commit of `--base`.
    async fn base(&self) -> anyhow::Result<String> {
        let Work { repo, base, .. } = &self.work;
        let commit = self.remote.resolve(base).await?;
        commit.ok_or_else(|| never(anyhow::anyhow!("{repo} has no `{base}`")))
    }

    /// Waits for the result of another attempt.
    async fn other(&self) -> anyhow::Result<()> {
        let order = self.name.clone();
        let named = Named { order };
        loop {
            let verdict: Option<Verdict> = self.client.send("/v1/result", None, &named).await?;
            if verdict.is_some() {
                return Ok(());
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    async fn attempt(&self, attempt: &Attempt) -> anyhow::Result<()> {
        let (repo, out) = (self.file("repo"), self.file("out"));
        self.unless_interrupted(self.remote.check_out(&attempt.base, &repo))
            .await?;
        let client = Arc::clone(&self.client);
        let address = proxy::start(client, &attempt.token, self.interrupt.clone()).await?;
        let code = self.run_program(&repo, &out, &address).await?;
        let (verdict, commit, reason) = match code {
            Some(0) => {
                let push = self.remote.push(&repo, &attempt.reference);
                let commit = self.unless_interrupted(push).await?;
                (Verdict::Passed, Some(commit), String::new())
            }
            Some(1) => (Verdict::Failed, None, self.stage()),
            code => {
                let ended =
                    code.map_or("was killed".to_owned(), |code| format!("ended with {code}"));
                let error = format!("code-commit {ended}: {}", self.last_words());
                // What it is refused for may be this machine's fault, such as a full disk. Twice the same is the order's own.
                let is_again = code == Some(3) && attempt.earlier.ends_with(&error);
                let error = anyhow::Error::msg(error);
                return Err(if is_again || code == Some(2) {
                    never(error)
                } else {
                    error
                });
            }
        };
        let token = Some(&*attempt.token);
        let bundle = self.store_bundle(token, out).await?;
        let verdict = Some(verdict);
        let finish = Finish {
            verdict,
            reason,
            commit,
            bundle,
        };
        let _: IgnoredAny =
            self.unless_void(self.client.send("/v1/finish", token, &finish).await)?;
        tracing::info!(order = self.name, ?verdict, "finished");
        Ok(())
    }

    /// Sends the run folder; its hash. The result counts without it, too: giving the order back would end the same way each time.
    async fn store_bundle(
        &self,
        token: Option<&str>,
        folder: PathBuf,
    ) -> anyhow::Result<Option<String>> {
        let pack = async { Ok(spawn_blocking(move || bundle::pack(&folder)).await?) };
        let refused = match self.unless_interrupted(pack).await? {
            Ok(packed) => {
                let sha256 = hex(&Sha256::digest(&packed));
                let path = "/v1/bundle";
                let sent = self
                    .client
                    .send_bytes(path, token, "application/zstd", packed);
                match sent.await {
                    Err(Failure::Never(refused)) => anyhow::Error::msg(refused),
                    sent => {
                        let _: IgnoredAny = self.unless_void(sent)?;
                        return Ok(Some(sha256));
                    }
                }
            }
            Err(error) => error,
        };
        tracing::warn!(error = format!("{refused:#}"), "the run folder is not kept");
        Ok(None)
    }

    /// A void token ends the attempt.
    fn unless_void<T>(&self, answer: Result<T, Failure>) -> anyhow::Result<T> {
        if matches!(answer, Err(Failure::Void)) {
            self.interrupt.send_replace(Interrupt::Void);
        }
        Ok(answer?)
    }

    /// Leaves a note for people, if the gateway is there.
    async fn give_up(&self, attempt: &Attempt, reason: String) {
        let finish = Finish {
            reason,
            ..Finish::default()
        };
        let token = Some(&*attempt.token);
        let noted = self.client.send::<IgnoredAny>("/v1/finish", token, &finish);
        let _ = tokio::time::timeout(Duration::from_secs(1), noted).await;
    }

    /// Git, which ends with its future.
    async fn unless_interrupted<T>(
        &self,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::select! { done = step => done, () = self.interrupted() => anyhow::bail!("interrupted") }
    }

    async fn interrupted(&self) {
        let mut interrupt = self.interrupt.subscribe();
        // The sender is ours.
        let _ = interrupt
            .wait_for(|interrupt| *interrupt != Interrupt::None)
            .await;
    }

    /// The exit code of the ordinary program; `None` if a signal ended it.
    async fn run_program(
        &self,
        repo: &Path,
        out: &Path,
        models: &str,
    ) -> anyhow::Result<Option<i32>> {
        std::fs::write(self.file("order.json"), &self.content).context("cannot write the order")?;
        let mut command = self.command(models);
        command.args([
            "order",
            "run",
            "order.json",
            "--commit",
            "--json",
            "--quiet",
            "--repo",
        ]);
        command
            .arg(repo)
            .arg("--out")
            .arg(out)
            .args(["--llm-model", &self.work.model]);
        command.args(["--key", &self.name]).args(&self.work.flags);
        command.stdout(File::create(self.file("stdout"))?);
        command.stderr(File::create(self.file("stderr"))?);
        let name = self.work.program.display();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}"));
        let mut child = child.map_err(never)?;
        let group = Group::of(&child);
        tokio::select! {
            status = child.wait() => {
                group.has_ended();
                Ok(status?.code())
            }
            () = self.interrupted() => {
                // SIGTERM lets it end the processes in its sandbox.
                group.signal(Signal::TERM);
                if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
                    group.signal(Signal::KILL);
                }
                anyhow::bail!("interrupted")
            }
        }
    }

    /// The program without arguments, in an environment of its own.
    fn command(&self, models: &str) -> Command {
        #[expect(clippy::disallowed_methods, reason = "this module starts the product")]
        let mut command = Command::new("/usr/bin/env");
        command
            .args(WITH_WORKER)
            .arg(&self.work.program)
            .env_clear();
        for name in PASSED {
            command.envs(environment::variable(name).map(|value| (name, value)));
        }
        // Credentials for pushing lie in the home folder, as a rule.
        command.env("HOME", self.file("home"));
        for provider in Provider::all_built_in() {
            command.envs(provider.base_env.iter().map(|name| (name, models)));
            command.envs(provider.key_env.iter().map(|name| (name, NO_KEY)));
        }
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "code-commit");
            command.env(format!("GIT_{who}_EMAIL"), "code-commit@localhost");
        }
        command.current_dir(self.scratch.folder.path());
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.folder.path().join(name)
    }

    /// The last line that the program printed for people.
    fn last_words(&self) -> String {
        let printed = std::fs::read(self.file("stderr")).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        printed
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("it printed nothing")
            .to_owned()
    }

    /// At which stage the order failed.
    fn stage(&self) -> String {
        let printed = std::fs::read_to_string(self.file("stdout")).unwrap_or_default();
        let stage = |line| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(line.pointer("/summary/ended_stage")?.as_str()?.to_owned())
        };
        printed.lines().rev().find_map(stage).unwrap_or_default()
    }
}

/// A folder for one attempt, with a lock that the system gives back when this process ends.
#[derive(Debug)]
struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(SCRATCH)
            .tempdir()
            .context("there is no room for temporary files")?;
        let lock = File::create(folder.path().join("lock"))?;
        lock.lock()?;
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(folder.path().join("home"))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }
}

/// Removes scratch folders of workers that were killed.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry
            .metadata()
            .is_ok_and(|folder| folder.uid() == getuid().as_raw());
        if !is_ours || !entry.file_name().to_string_lossy().starts_with(SCRATCH) {
            continue;
        }
        let lock = environment::open(&path.join("lock"));
        let is_left = lock.is_ok_and(|lock| lock.try_lock().is_ok());
        if is_left {
            // Another worker may be faster, or its program may still write.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}
