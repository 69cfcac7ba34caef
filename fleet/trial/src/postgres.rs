//! A PostgreSQL server of a test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::disk::Disk;
use crate::{Program, until};

/// PostgreSQL refuses to run as root; this is Debian's `nobody`.
const NOBODY: &str = "65534";

/// A running server; dropping it ends it and removes its data.
#[derive(Debug)]
pub struct Postgres {
    server: Option<Program>,
    bin: PathBuf,
    folder: TempDir,
    settings: Vec<String>,
    /// Its data are there, if it has a disk of its own.
    disk: Option<Disk>,
}

/// A database of its own on a server that the tests of a process share, as long as any of them runs.
#[derive(Debug)]
pub struct Database {
    server: Arc<Postgres>,
    name: String,
}

impl Database {
    /// An empty one; `None` if PostgreSQL is not installed, which is said.
    pub fn create() -> anyhow::Result<Option<Self>> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match shared.upgrade() {
            Some(server) => server,
            None => match Postgres::start()? {
                Some(server) => Arc::new(server),
                None => return Ok(None),
            },
        };
        *shared = Arc::downgrade(&server);
        drop(shared);
        let name = format!("trial_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        server.query(&format!("CREATE DATABASE {name}"))?;
        Ok(Some(Self { server, name }))
    }

    /// For `tokio_postgres`.
    pub fn address(&self) -> String {
        self.server.address_of(&self.name)
    }

    /// Runs one statement; what it prints, without headers.
    pub fn query(&self, statement: &str) -> anyhow::Result<String> {
        self.server.query_in(&self.name, statement)
    }

    /// As [`Postgres::dump`].
    pub fn dump(&self) -> anyhow::Result<String> {
        self.server.dump_of(&self.name)
    }

    /// As [`Postgres::restore`].
    pub fn restore(&self, backup: &str) -> anyhow::Result<()> {
        self.server.restore_to(&self.name, "postgres", backup)
    }
}

impl Postgres {
    /// A server that does not wait for the disk: it may be killed, but the machine may not lose power. `None` if PostgreSQL is
    /// not installed, which is said.
    pub fn start() -> anyhow::Result<Option<Self>> {
        Self::start_with(&["fsync=off"])
    }

    /// The same with settings of one's own.
    pub fn start_with(settings: &[&str]) -> anyhow::Result<Option<Self>> {
        let Some(postgres) = Self::install(settings)? else {
            return Ok(None);
        };
        postgres.launch().map(Some)
    }

    /// A server with a disk of its own for its data; `None`, said aloud, also where nobody may mount one.
    pub fn start_on_disk(megabytes: u32) -> anyhow::Result<Option<Self>> {
        let Some(mut postgres) = Self::install(&["fsync=off"])? else {
            return Ok(None);
        };
        postgres.disk = Disk::at(&postgres.folder.path().join("data"), megabytes)?;
        if postgres.disk.is_some() {
            postgres.launch().map(Some)
        } else {
            Ok(None)
        }
    }

    fn install(settings: &[&str]) -> anyhow::Result<Option<Self>> {
        let Some(bin) = installed() else {
            eprintln!("SKIPPED: PostgreSQL is not installed (apt-get install postgresql)");
            return Ok(None);
        };
        let folder = tempfile::Builder::new()
            .prefix("code-commit-fleet-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        fs::create_dir(folder.path().join("data"))?;
        Ok(Some(Self {
            server: None,
            bin,
            folder,
            settings,
            disk: None,
        }))
    }

    fn launch(mut self) -> anyhow::Result<Self> {
        self.fill()?;
        self.begin()?;
        Ok(self)
    }

    /// For `tokio_postgres`.
    pub fn address(&self) -> String {
        self.address_of("postgres")
    }

    /// The same over the network: where the setting `listen_addresses` says.
    pub fn address_at(&self, host: &str) -> String {
        format!("host={host} user=postgres dbname=postgres")
    }

    fn address_of(&self, database: &str) -> String {
        format!(
            "host={} user=postgres dbname={database}",
            self.folder.path().display()
        )
    }

    /// Runs one statement; what it prints, without headers.
    pub fn query(&self, statement: &str) -> anyhow::Result<String> {
        self.query_in("postgres", statement)
    }

    fn query_in(&self, database: &str, statement: &str) -> anyhow::Result<String> {
        self.client(
            "psql",
            database,
            &[
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                statement,
            ],
        )
    }

    /// Runs one of PostgreSQL's own programs; what it prints.
    fn client(&self, program: &str, database: &str, args: &[&str]) -> anyhow::Result<String> {
        let mut client = Command::new(self.bin.join(program));
        client
            .arg("-h")
            .arg(self.folder.path())
            .args(["-U", "postgres", "-d", database])
            .args(args);
        let done = client.stdin(Stdio::null()).output()?;
        anyhow::ensure!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(String::from_utf8(done.stdout)?)
    }

    /// A backup, as `pg_dump` makes it.
    pub fn dump(&self) -> anyhow::Result<String> {
        self.dump_of("postgres")
    }

    /// Drops the database, with whoever is connected to it, and makes it again from a backup.
    pub fn restore(&self, backup: &str) -> anyhow::Result<()> {
        self.restore_to("postgres", "template1", backup)
    }

    fn dump_of(&self, database: &str) -> anyhow::Result<String> {
        let dump = self.client("pg_dump", database, &[])?;
        // Newer versions have a key of its own in each backup, which two of the same content would differ by.
        let is_content =
            |line: &&str| !line.starts_with("\\restrict ") && !line.starts_with("\\unrestrict ");
        Ok(dump.split_inclusive('\n').filter(is_content).collect())
    }

    /// `elsewhere` is a database that exists.
    fn restore_to(&self, database: &str, elsewhere: &str, backup: &str) -> anyhow::Result<()> {
        self.query_in(elsewhere, &format!("DROP DATABASE {database} WITH (FORCE)"))?;
        self.query_in(
            elsewhere,
            &format!("CREATE DATABASE {database} TEMPLATE template0"),
        )?;
        let file = self.folder.path().join("backup");
        fs::write(&file, backup)?;
        let file = file.to_string_lossy();
        self.client(
            "psql",
            database,
            &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", &file],
        )
        .map(drop)
    }

    /// Leaves no room on its disk.
    pub fn fill_disk(&self) -> anyhow::Result<()> {
        self.disk.as_ref().map_or(Ok(()), Disk::fill)
    }

    /// Makes room again.
    pub fn free_disk(&self) -> anyhow::Result<()> {
        self.disk.as_ref().map_or(Ok(()), Disk::free)
    }

    /// The server's log.
    pub fn log(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.folder.path().join("log"))?)
    }

    /// Kills the server without warning; its data are recovered by the next [`Postgres::begin`].
    pub fn crash(&mut self) -> anyhow::Result<()> {
        self.server
            .take()
            .map_or(Ok(()), |mut server| server.kill())
    }

    /// Stops or continues every process of the server.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        for pid in server.and_children()? {
            // A backend may have ended since.
            let _ = kill_process(pid, signal);
        }
        Ok(())
    }

    /// Starts the server and waits until it takes connections.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        until("PostgreSQL to start", || {
            // After a crash, its last processes hold the shared memory for a moment, and a new server gives up.
            if self.server.as_mut().is_none_or(Program::has_ended) {
                self.server = Some(self.spawn().ok()?);
            }
            self.is_ready().then_some(())
        })
        .with_context(|| fs::read_to_string(self.folder.path().join("log")).unwrap_or_default())
    }

    fn fill(&self) -> anyhow::Result<()> {
        let template = template(&self.bin)?;
        run(Command::new("cp")
            .arg("-a")
            .arg(template.join("."))
            .arg(self.data()))?;
        // It listens nowhere unless a test says so, and then on a network of the test's own.
        fs::write(
            self.data().join("pg_hba.conf"),
            "local all all trust\nhost all all all trust\n",
        )?;
        if is_root() {
            // Also for the socket.
            run(Command::new("chown")
                .args(["-R", NOBODY])
                .arg(self.folder.path())
                .arg(self.data()))?;
        }
        Ok(())
    }

    fn spawn(&self) -> anyhow::Result<Program> {
        let outer = self
            .disk
            .as_ref()
            .map_or_else(|| Command::new("env"), Disk::inside);
        let mut command = as_nobody(outer, &self.bin.join("postgres"));
        command
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .arg("-k")
            .arg(self.folder.path());
        command.args(["-c", "listen_addresses=", "-c", "max_connections=120"]);
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        Program::start(command, &self.folder.path().join("log"))
    }

    fn is_ready(&self) -> bool {
        let mut ready = Command::new(self.bin.join("pg_isready"));
        ready
            .arg("-q")
            .arg("-h")
            .arg(self.folder.path())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// As this process sees them.
    fn data(&self) -> PathBuf {
        self.disk
            .as_ref()
            .map_or_else(|| self.folder.path().join("data"), Disk::path)
    }
}

/// The newest one of Debian's.
fn installed() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .map(|e| e.path().join("bin"))
        .collect();
    found.retain(|bin| bin.join("initdb").exists());
    found.sort();
    found.pop()
}

/// An empty cluster, made once and copied for each server: making one takes seconds.
fn template(bin: &Path) -> anyhow::Result<PathBuf> {
    let version = bin.parent().and_then(Path::file_name).unwrap_or_default();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../target/trial")
        .join(version);
    if kept.exists() {
        return Ok(kept);
    }
    let scratch = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir()?;
    // Permissions are subject to the umask.
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777))?;
    let fresh = scratch.path().join("data");
    run(as_nobody(Command::new("env"), &bin.join("initdb"))
        .arg("-D")
        .arg(&fresh)
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]))?;
    let parent = kept.parent().context("the template has no folder")?;
    fs::create_dir_all(parent)?;
    let staged = tempfile::tempdir_in(parent)?;
    run(Command::new("cp")
        .arg("-a")
        .arg(&fresh)
        .arg(staged.path().join("data")))?;
    // Another test may have been faster.
    let _ = fs::rename(staged.path().join("data"), &kept);
    Ok(kept)
}

/// Appends a program to another one that starts it.
fn as_nobody(mut outer: Command, program: &Path) -> Command {
    if is_root() {
        outer
            .args([
                "setpriv",
                "--reuid",
                NOBODY,
                "--regid",
                NOBODY,
                "--clear-groups",
                "--",
            ])
            .current_dir("/");
    }
    outer.arg(program);
    outer
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let done = command.stdin(Stdio::null()).output()?;
    anyhow::ensure!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}

/// The parent of each process.
pub(crate) fn children_of(parent: Pid) -> anyhow::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name, in parentheses, may hold anything.
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        if after_name.split(' ').nth(1) == Some(&parent.as_raw_nonzero().to_string()) {
            children.extend(Pid::from_raw(pid));
        }
    }
    Ok(children)
}
