//! Everything on one machine: a database, `serve`, and a local engine.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_llm::Provider;
use rustix::process::{Signal, getuid};
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::git::Group;
use crate::money::Nanodollars;
use crate::serve::{Setup, serve};
use crate::store::{Store, secret};
use crate::{admin, environment};

/// The local engine.
const ENGINE: &str = include_str!("../engines/local/run");
/// PostgreSQL refuses to run as root; this is Debian's user for it.
const USER: &str = "postgres";
/// Until a database takes connections.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(200);
/// Workers end within this time.
const GRACE: Duration = Duration::from_secs(10);

/// Carries orders out on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// The orders' files
    #[arg(required = true)]
    orders: Vec<PathBuf>,
    /// The repository, by an address that git can clone and push to
    #[arg(long, value_name = "URL")]
    repo: String,
    /// A branch, a tag or a commit of it
    #[arg(long, value_name = "REV")]
    base: String,
    /// The model
    #[arg(long, value_name = "PROVIDER/NAME")]
    model: String,
    /// The most that the batch may spend, in dollars
    #[arg(long, value_name = "USD")]
    cap: Nanodollars,
    /// The batch's name
    #[arg(long, default_value = "local")]
    batch: String,
    /// How many orders are carried out at a time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Where the database lies, unless there is a --database [default: ~/.local/state/code-commit-gateway]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    setup: Setup,
}

impl Up {
    /// Fails unless each order has its verdict.
    pub(crate) fn run(self, database: Option<String>) -> anyhow::Result<()> {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
            let Some(database) = database else {
                let folder = self.state.clone().map_or_else(state, Ok)?;
                let _lock = alone(&folder)?;
                let mut postgres = Postgres::start(&folder).await?;
                let done = tokio::select! {
                    done = self.with_database(&postgres.address) => done,
                    ended = postgres.server.wait() => Err(anyhow::anyhow!("PostgreSQL ended: {ended:?}")),
                };
                postgres.stop().await?;
                return done;
            };
            self.with_database(&database).await
        })
    }

    async fn with_database(self, address: &str) -> anyhow::Result<()> {
        let store = Store::open(address)?;
        store.migrate().await?;
        admin::make_batch(&store, &self.batch, "default").await?;
        admin::set_cap(&store, &format!("batch:{}", self.batch), Some(self.cap)).await?;
        let name: String = secret()?.chars().take(8).collect();
        let token = admin::make_token(&store, &format!("up-{name}"), &self.batch, 1).await?;
        // The environment of a shell is less private than ours.
        let mut file = NamedTempFile::new()?;
        file.write_all(token.as_bytes())?;
        let (ready, listens) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let is_tls = self.setup.tls_certificate.is_some();
        let scheme = if is_tls { "https" } else { "http" };
        let mut served = tokio::spawn(serve(store.clone(), self.setup, Some(ready), stopped));
        let Ok(listens) = listens.await else {
            return served.await?;
        };
        let mut engine = engine(&self.orders, self.jobs, &self.repo, &self.base)?;
        engine.env("CODE_COMMIT_GATEWAY_URL", format!("{scheme}://{listens}"));
        engine
            .env("CODE_COMMIT_GATEWAY_TOKEN_FILE", file.path())
            .env("CODE_COMMIT_GATEWAY_MODEL", &self.model);
        let mut child = engine.spawn().context("bash cannot be started")?;
        let group = Group::of(&child);
        let status = tokio::select! {
            status = child.wait() => status?,
            served = &mut served => return served?,
            // The workers give their orders back first.
            () = environment::stopped() => {
                group.signal(Signal::TERM);
                let status = child.wait().await?;
                let _ = timeout(GRACE, group.end()).await;
                status
            }
        };
        group.has_ended();
        drop(stop);
        // Calls under way are paid for. Whoever interrupts twice does not wait for them.
        tokio::select! { served = served => served??, () = environment::stopped() => {} }
        admin::show_results(&store, &self.batch).await?;
        anyhow::ensure!(
            status.success(),
            "not all orders have a verdict; the same command goes on with them"
        );
        Ok(())
    }
}

/// The usual folder.
fn state() -> anyhow::Result<PathBuf> {
    environment::folder("XDG_STATE_HOME", ".local/state")
        .context("there is no home folder; name a --state folder")
}

/// Held by an `up` as long as it lives.
fn alone(folder: &Path) -> anyhow::Result<File> {
    let named = || folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(named)?;
    let lock = File::create(folder.join("lock")).with_context(named)?;
    lock.try_lock()
        .with_context(|| format!("another `up` uses {}", named()))?;
    Ok(lock)
}

/// The address of a database that `up` runs at this moment in the usual folder.
pub(crate) fn running() -> Option<String> {
    let data = state().ok()?.join("postgres");
    data.join("postmaster.pid").exists().then(|| address(&data))
}

fn address(data: &Path) -> String {
    format!("host={} user={USER} dbname=postgres", data.display())
}

/// The local engine, in a process group of its own.
fn engine(orders: &[PathBuf], jobs: u16, repo: &str, base: &str) -> anyhow::Result<Command> {
    let program = std::env::current_exe()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this module starts the local engine"
    )]
    let mut engine = Command::new("setpriv");
    engine
        .args(["--pdeathsig", "TERM", "--", "bash", "-c", ENGINE])
        .args(["local/run", &jobs.to_string(), repo, base])
        .args(orders);
    engine
        .env("CODE_COMMIT_GATEWAY", program)
        .stdin(Stdio::null())
        .process_group(0);
    // They are for `serve` alone.
    let keys = Provider::all_built_in()
        .iter()
        .flat_map(|provider| &provider.key_env);
    for name in keys
        .map(String::as_str)
        .chain(["CODE_COMMIT_GATEWAY_DATABASE"])
    {
        engine.env_remove(name);
    }
    Ok(engine)
}

/// A server of our own. Nobody but its user and root reaches its socket.
struct Postgres {
    server: Child,
    address: String,
}

impl Postgres {
    async fn start(folder: &Path) -> anyhow::Result<Self> {
        let bin = installed().context(
            "PostgreSQL is not installed (apt-get install postgresql); or name a --database",
        )?;
        let data = folder.join("postgres");
        if !data.exists() {
            // In one piece, or not at all: this may be killed.
            let begun = folder.join("postgres.begun");
            if begun.exists() {
                std::fs::remove_dir_all(&begun)?;
            }
            std::fs::DirBuilder::new().mode(0o700).create(&begun)?;
            if getuid().is_root() {
                succeed(program("chown".as_ref()).arg(USER).arg(&begun)).await?;
            }
            let mut initdb = as_user(&bin.join("initdb"));
            initdb.args(["-U", USER, "-A", "trust", "-E", "UTF8", "-D"]);
            succeed(initdb.arg(&begun)).await?;
            std::fs::rename(&begun, &data)?;
        }
        // An `up` that was killed may have left its server, which ends by itself, but not at once.
        let mut old = as_user(&bin.join("pg_ctl"));
        let _ = succeed(old.args(["stop", "-m", "fast", "-D"]).arg(&data)).await;
        let log = File::create(folder.join("postgres.log"))?;
        let mut server = as_user(&bin.join("postgres"));
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&data)
            .args(["-c", "listen_addresses="]);
        // A group of its own: Ctrl-C ends the workers first.
        let server = server
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let address = address(&data);
        let store = Store::open(&address)?;
        let ready = async {
            while store.client().await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let waited = timeout(PATIENCE, ready).await;
        waited.with_context(|| {
            format!(
                "PostgreSQL does not start: see {}",
                folder.join("postgres.log").display()
            )
        })?;
        Ok(Self { server, address })
    }

    /// Lets it write everything out.
    async fn stop(mut self) -> anyhow::Result<()> {
        // SIGINT: what is under way is rolled back. To the server alone, which stops its processes.
        let server = self
            .server
            .id()
            .and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(server) = server {
            let _ = rustix::process::kill_process(server, Signal::INT);
        }
        self.server.wait().await?;
        Ok(())
    }
}

/// One of PostgreSQL's programs, which ends with us. Root starts it as PostgreSQL's user.
fn as_user(name: &Path) -> Command {
    let mut command = program("setpriv".as_ref());
    command.args(["--pdeathsig", "INT"]);
    if getuid().is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
    }
    command.arg("--").arg(name);
    command
}

fn program(name: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this module starts PostgreSQL")]
    let mut command = Command::new(name);
    command.current_dir("/").stdin(Stdio::null());
    command
}

async fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let done = command.output().await?;
    anyhow::ensure!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr).trim()
    );
    Ok(())
}

/// The folder of the newest version of Debian's.
fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let version =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().parse::<u32>().ok();
    let newest = versions
        .filter(|entry| entry.path().join("bin/initdb").exists())
        .max_by_key(version)?;
    Some(newest.path().join("bin"))
}
