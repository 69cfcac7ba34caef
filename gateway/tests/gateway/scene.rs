//! A database, a gateway, a vendor and a remote of a test's own.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_code-commit-gateway");
pub(crate) const DATABASE: &str = "CODE_COMMIT_GATEWAY_DATABASE";
/// PostgreSQL refuses to run as root; this is Debian's `nobody`.
const NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups --";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
pub(crate) const COMMIT: &str = "cccccccccccccccccccccccccccccccccccccccc";
pub(crate) const GEMINI: &str = "/m/v1beta/models/gemini-2.5-pro:generateContent";
pub(crate) const STREAM: &str = "/m/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";

/// How many hold the lock of the only gateway.
pub(crate) const LOCKS: &str =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";

/// A scene, or the end of the test where PostgreSQL is not installed.
macro_rules! scene {
    ($($part:expr),* $(,)?) => {
        match crate::scene::Scene::new($($part),*) {
            Some(scene) => scene,
            None => return,
        }
    };
}
pub(crate) use scene;

/// A program with arguments that are separated by blanks.
pub(crate) fn command(program: impl AsRef<Path>, words: &str) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(words.split_whitespace());
    command
}

/// A program, started by a user who is not root.
pub(crate) fn as_nobody(program: impl AsRef<Path>, words: &str) -> Command {
    if !getuid().is_root() {
        return command(program, words);
    }
    let mut nobody = command("env", NOBODY);
    nobody.arg(program.as_ref()).args(words.split_whitespace());
    nobody.current_dir("/");
    nobody
}

/// What a program prints.
pub(crate) fn run(command: &mut Command) -> String {
    let done = command.stdin(Stdio::null()).output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Waits until `found` is.
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_mins(3), "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Fails unless a text has this part.
#[track_caller]
pub(crate) fn has(text: impl AsRef<str>, part: &str) {
    let text = text.as_ref();
    assert!(text.contains(part), "{part}: {text}");
}

/// Some fields of a row.
pub(crate) fn pick<const N: usize>(row: &Value, names: [&str; N]) -> Value {
    names.into_iter().map(|name| row[name].clone()).collect()
}

/// Writes an executable file.
pub(crate) fn script(file: &Path, content: &str) {
    fs::write(file, format!("#!/bin/sh\n{content}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A running program; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap());
        let child = command.stderr(log).spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        let _ = kill_process(pid.unwrap(), signal);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        until("end of a program", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A PostgreSQL server on a socket in a folder of its own.
#[derive(Debug)]
pub(crate) struct Postgres {
    server: Option<Running>,
    bin: PathBuf,
    folder: TempDir,
}

impl Postgres {
    /// `None`, said aloud, if PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let Some(bin) = versions
            .map(|entry| entry.unwrap().path().join("bin"))
            .max()
        else {
            eprintln!("SKIPPED: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (template, path) = (template(&bin).display(), folder.path().display());
        run(&mut command("cp", &format!("-a {template} {path}/data")));
        if getuid().is_root() {
            run(&mut command("chown", &format!("-R 65534:65534 {path}")));
        }
        let server = None;
        let mut postgres = Self {
            server,
            bin,
            folder,
        };
        postgres.begin();
        Some(postgres)
    }

    pub(crate) fn begin(&mut self) {
        let path = self.path().display().to_string();
        // It may be killed, but the machine may not lose power.
        let settings = "-c listen_addresses= -c max_connections=120 -c fsync=off";
        let words = format!("-D {path}/data -k {path} {settings}");
        let mut server = as_nobody(self.bin.join("postgres"), &words);
        self.server = Some(Running::start(&mut server, &self.path().join("log")));
        let mut ready = command(self.bin.join("pg_isready"), &format!("-q -h {path}"));
        until("PostgreSQL", || {
            ready.status().unwrap().success().then_some(())
        });
    }

    /// Stops it without writing anything out.
    pub(crate) fn stop_immediately(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.signal(Signal::QUIT);
            server.wait();
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn address(&self, database: &str) -> String {
        format!(
            "host={} user=postgres dbname={database}",
            self.path().display()
        )
    }

    /// What a statement gives.
    pub(crate) fn query(&self, statement: &str) -> String {
        run(self.client("psql", "-XqAt").args(["-c", statement]))
            .trim()
            .to_owned()
    }

    /// Waits until a statement gives this.
    pub(crate) fn until(&self, statement: &str, expected: &str) {
        until(statement, || {
            (self.query(statement) == expected).then_some(())
        });
    }

    pub(crate) fn client(&self, program: &str, words: &str) -> Command {
        let mut client = command(self.bin.join(program), words);
        client.args(["-U", "postgres", "-h"]).arg(self.path());
        client
    }
}

/// An empty cluster, kept in the target folder and copied for each server: making one takes seconds.
fn template(bin: &Path) -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let version = bin.parent().unwrap().file_name().unwrap();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(version);
        if !kept.exists() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().display();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
            let words = format!("-D {path}/data -U postgres -A trust -E UTF8 -N");
            run(&mut as_nobody(bin.join("initdb"), &words));
            let staged = kept.with_extension(std::process::id().to_string());
            run(&mut command(
                "cp",
                &format!("-a {path}/data {}", staged.display()),
            ));
            // Another run may be faster.
            let _ = fs::rename(staged, &kept);
        }
        kept
    })
}

/// All that a test of the gateway needs.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) serve: Running,
    pub(crate) vendor: Server,
    pub(crate) postgres: Postgres,
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    /// The token of a worker of batch `b`.
    pub(crate) worker: String,
    flags: String,
}

/// A free port of loopback.
pub(crate) fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

impl Scene {
    /// `flags` are more of `serve`.
    pub(crate) fn new(script: Script, flags: &str) -> Option<Self> {
        let postgres = Postgres::start()?;
        let folder = tempfile::tempdir().unwrap();
        let vendor = Server::start(script).unwrap();
        let (port, origin) = (port(), vendor.origin());
        let vendors =
            ["gemini", "anthropic", "openai"].map(|name| format!("--vendor {name}={origin}"));
        let flags = format!("--listen 127.0.0.1:{port} {} {flags}", vendors.join(" "));
        let is_tls = flags.contains("--tls");
        let url = if is_tls {
            format!("https://localhost:{port}")
        } else {
            format!("http://127.0.0.1:{port}")
        };
        let serve = start_serve(&postgres.address("postgres"), &flags, folder.path(), 0);
        let worker = String::new();
        let mut scene = Self {
            serve,
            vendor,
            postgres,
            folder,
            url,
            worker,
            flags,
        };
        scene.admin("batch b --tenant t");
        scene.worker = scene.token("w --batch b");
        Some(scene)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.file("serve.log")).unwrap()
    }

    /// Kills the gateway without warning and starts another one.
    pub(crate) fn restart(&mut self) {
        self.serve.kill();
        let begun = self.log().matches("\"serving\"").count();
        let address = self.postgres.address("postgres");
        self.serve = start_serve(&address, &self.flags, self.folder.path(), begun);
    }

    /// An operator's command.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = command(PROGRAM, words);
        command.env(DATABASE, self.postgres.address("postgres"));
        command
    }

    /// What it prints.
    pub(crate) fn admin(&self, words: &str) -> String {
        run(&mut self.command(words))
    }

    /// A new worker's token.
    pub(crate) fn token(&self, words: &str) -> String {
        self.admin(&format!("token {words}")).trim().to_owned()
    }

    /// The rows of its table.
    pub(crate) fn table(&self, words: &str) -> Vec<Value> {
        let printed = self.admin(&format!("{words} --json"));
        printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Status and body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut answer = agent().get(format!("{}{path}", self.url)).call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), body)
    }

    /// As a worker, with the token of an attempt if there is one.
    pub(crate) fn ask(&self, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let headers = [
            ("authorization", &*format!("Bearer {}", self.worker)),
            ("x-code-commit-order-token", token),
        ];
        let (status, body) = post(&format!("{}{path}", self.url), &headers, &body.to_string());
        (
            status,
            serde_json::from_str(&body).unwrap_or(Value::String(body)),
        )
    }

    /// The status of an attempt to finish an order as passed.
    pub(crate) fn finish(&self, token: &str) -> u16 {
        self.ask("/v1/finish", token, &passed(COMMIT)).0
    }

    /// Begins an order; the token.
    pub(crate) fn begin(&self, order: &str) -> String {
        let (status, begun) = self.ask("/v1/begin", "", &begin(order));
        assert_eq!(status, 200, "{begun}");
        begun["attempt"]["token"].as_str().unwrap().to_owned()
    }

    /// Asks a model for an attempt.
    pub(crate) fn model(&self, token: &str, path: &str, body: &str) -> (u16, String) {
        ask_model(&format!("{}{path}", self.url), token, body)
    }

    /// How many requests the vendor got.
    pub(crate) fn asked(&self) -> usize {
        self.vendor.requests().len()
    }

    /// The bundle of an order of batch `b`, as a file.
    pub(crate) fn bundle(&self, order: &str) -> String {
        let file = self.file("bundle").display().to_string();
        let words = "results --batch b --bundle";
        self.admin(&format!("{words} {order} --output {file}"));
        file
    }

    /// What the account says of scope `all`: held and spent, in nanodollars.
    pub(crate) fn money(&self) -> (i64, i64) {
        let row = self
            .postgres
            .query("SELECT held, spent FROM budgets WHERE scope = 'all'");
        let (held, spent) = row.split_once('|').unwrap();
        (held.parse().unwrap(), spent.parse().unwrap())
    }
}

fn serve(database: &str, flags: &str) -> Command {
    let mut command = command(PROGRAM, &format!("serve {flags}"));
    for name in ["GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        command.env(name, format!("the-real-{name}"));
    }
    command.env(DATABASE, database).env_remove("GOOGLE_API_KEY");
    command
}

/// What another gateway says that does not start.
pub(crate) fn refused_serve(database: &str) -> String {
    let Output { status, stderr, .. } = serve(database, "--listen 127.0.0.1:0").output().unwrap();
    assert_eq!(status.code(), Some(1));
    String::from_utf8(stderr).unwrap()
}

/// A gateway that serves; `begun` others have done so before in this folder.
pub(crate) fn start_serve(database: &str, flags: &str, folder: &Path, begun: usize) -> Running {
    let log = folder.join("serve.log");
    let running = Running::start(&mut serve(database, flags), &log);
    let serving = || {
        fs::read_to_string(&log)
            .unwrap()
            .matches("\"serving\"")
            .nth(begun)
            .map(drop)
    };
    until("gateway", serving);
    running
}

fn agent() -> ureq::Agent {
    ureq::Agent::new_with_config(
        ureq::config::Config::builder()
            .http_status_as_error(false)
            .build(),
    )
}

pub(crate) fn post(url: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = agent().post(url).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request
        .send(body)
        .unwrap_or_else(|error| panic!("{url}: {error}"));
    // An answer may be cut.
    let read = answer
        .body_mut()
        .with_config()
        .limit(1 << 30)
        .read_to_string();
    (
        answer.status().as_u16(),
        read.unwrap_or_else(|error| format!("CUT: {error}")),
    )
}

pub(crate) fn ask_model(url: &str, token: &str, body: &str) -> (u16, String) {
    post(url, &[("authorization", &format!("Bearer {token}"))], body)
}

/// A request to begin an order.
pub(crate) fn begin(order: &str) -> Value {
    json!({ "batch": null, "order": order, "content_sha256": EMPTY, "base": "a".repeat(40) })
}

pub(crate) fn passed(commit: &str) -> Value {
    json!({ "verdict": "passed", "reason": "", "commit": commit, "bundle": null })
}

/// A bare repository with a small project on branch `main`.
#[derive(Debug)]
pub(crate) struct Remote(Project);

impl Remote {
    pub(crate) fn new() -> Self {
        let files = [
            ("scripts/verify.sh", "test -d done\n"),
            ("done/README", "results\n"),
        ];
        let project = Project::with(&files).unwrap();
        project
            .git(&["clone", "-q", "--bare", ".", "../hub.git"])
            .unwrap();
        Self(project)
    }

    pub(crate) fn url(&self) -> String {
        self.0.beside().join("hub.git").display().to_string()
    }

    pub(crate) fn git(&self, words: &str) -> String {
        run(&mut command("git", &format!("-C {} {words}", self.url())))
    }

    /// The file of an order.
    pub(crate) fn order(&self, number: usize) -> PathBuf {
        let order = json!({
            "id": format!("order-{number:05}"),
            "title": "a result",
            "intent": format!("Write the result of order-{number:05}."),
            "allowed_files": [format!("done/{number:05}.txt")],
            "forbidden": [],
            "acceptance_commands": [format!("grep -x result-{number:05} done/{number:05}.txt")],
            "context_files": [],
            "notes": null
        });
        let file = self.0.beside().join(format!("order-{number:05}.json"));
        fs::write(&file, order.to_string()).unwrap();
        file
    }
}

/// A vendor that answers orders 0 to `count`, each as often as it is asked. `step` is how.
pub(crate) fn answers(count: usize, step: &Step) -> Script {
    (0..count).fold(Script::default(), |script, number| {
        let path = format!("done/{number:05}.txt");
        let content = format!("result-{number:05}\n");
        let write = json!({ "path": path, "base_sha256": EMPTY, "content": content });
        let reply = json!({ "summary": "a result", "writes": [write] });
        let text = Some(reply.to_string());
        let part = format!("the result of order-{number:05}.");
        script.rule(
            &part,
            Step {
                text,
                ..step.clone()
            },
        )
    })
}

/// A step that takes its time.
pub(crate) fn after(delay_ms: u64) -> Step {
    Step {
        delay_ms,
        ..Step::default()
    }
}

/// The ordinary program, which the first call builds unless `CODE_COMMIT_TEST_PROGRAM` names it.
pub(crate) fn product() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os("CODE_COMMIT_TEST_PROGRAM") {
            return program.into();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut build = command(env!("CARGO"), "build --locked --quiet --target-dir target");
        run(build.current_dir(root));
        root.join("target/debug/code-commit")
    })
}
