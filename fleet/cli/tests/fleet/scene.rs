//! A fleet on one machine, each part a process of its own.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use code_commit_fleet_trial::{
    Hub, Postgres, Program, Server, content, product, sibling, until, vendor,
};
use serde_json::Value;

/// Database, hub, vendor, gateway and workers.
pub(crate) struct Scene {
    // In the order in which they end.
    pub(crate) workers: BTreeMap<usize, Program>,
    pub(crate) land: Option<Program>,
    pub(crate) gateway: Option<Program>,
    pub(crate) postgres: Postgres,
    pub(crate) vendor: Server,
    pub(crate) hub: Hub,
    /// Of all programs of the fleet.
    pub(crate) environment: BTreeMap<&'static str, String>,
    /// The folder of the gateway's certificate and its authority, if it has one.
    pub(crate) certificates: Option<PathBuf>,
    /// As programs of the fleet reach it.
    database: String,
    /// Where the gateway listens.
    host: String,
    port: u16,
    remote_port: u16,
    /// Of workers on other machines.
    token: String,
}

impl Scene {
    /// A fleet without workers that can carry out orders 0 to `count`; `None`, said aloud, without PostgreSQL.
    pub(crate) fn new(count: usize, delay_ms: u64) -> Option<Self> {
        let postgres = Postgres::start().unwrap()?;
        let database = postgres.address();
        Some(Self::on(
            postgres,
            database,
            "127.0.0.1",
            vendor(count, delay_ms).unwrap(),
        ))
    }

    /// The same with a database that is elsewhere, and a gateway that listens at `host`.
    pub(crate) fn on(postgres: Postgres, database: String, host: &str, vendor: Server) -> Self {
        let (hub, host, [port, remote_port]) = (Hub::new().unwrap(), host.to_owned(), free_ports());
        let (workers, environment, land, gateway) = (BTreeMap::new(), BTreeMap::new(), None, None);
        let mut scene = Self {
            workers,
            land,
            gateway,
            postgres,
            vendor,
            hub,
            environment,
            certificates: None,
            database,
            host,
            port,
            remote_port,
            token: String::new(),
        };
        assert_eq!(scene.fleet(&["migrate"]).0, 0);
        scene.token = scene.make_token(&["workers", "--role", "worker"]);
        scene.start_gateway();
        scene
    }

    /// Makes a token; its secret.
    pub(crate) fn make_token(&self, flags: &[&str]) -> String {
        let (code, facts) = self.fleet(&[&["token", "make"], flags].concat());
        assert_eq!(code, 0);
        facts[0]["secret"].as_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.hub.scratch().join(name)
    }

    /// Runs `code-commit-fleet --json`; its exit code, 124 if it did not end within half an hour, and what it prints.
    pub(crate) fn fleet(&self, args: &[&str]) -> (i32, Vec<Value>) {
        let done = self.run(args);
        let printed = String::from_utf8(done.stdout).unwrap();
        let facts = printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (done.status.code().unwrap(), facts)
    }

    /// The same for a command that is refused: its exit code and the error.
    pub(crate) fn refused(&self, args: &[&str]) -> (i32, String) {
        let done = self.run(args);
        (
            done.status.code().unwrap(),
            String::from_utf8(done.stderr).unwrap(),
        )
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command
            .arg("1800")
            .arg(sibling("code-commit-fleet").unwrap())
            .args(args)
            .arg("--json");
        self.with_database(command)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Submits orders in this range, each a file of its own; their numbers in the fleet.
    pub(crate) fn submit(&self, orders: std::ops::Range<usize>, flags: &[&str]) -> Vec<i64> {
        self.submit_all(orders, flags, |number| content(number).unwrap())
    }

    /// Submits orders in this range with the contents that `content` gives.
    pub(crate) fn submit_all(
        &self,
        orders: std::ops::Range<usize>,
        flags: &[&str],
        content: impl Fn(usize) -> String,
    ) -> Vec<i64> {
        let write = |number: usize| {
            let file = self.path(&format!("{number}.json"));
            std::fs::write(&file, content(number)).unwrap();
            file.display().to_string()
        };
        let files: Vec<String> = orders.map(write).collect();
        let url = self.hub.url();
        let mut args = vec!["submit", "--repo", &url, "--base", "main"];
        args.extend(flags);
        args.extend(files.iter().map(String::as_str));
        let (code, facts) = self.fleet(&args);
        assert_eq!(code, 0);
        facts
            .iter()
            .map(|fact| fact["order"].as_i64().unwrap())
            .collect()
    }

    /// Waits until nothing more happens; the exit code, as of [`Self::fleet`].
    pub(crate) fn watch(&self) -> i32 {
        self.fleet(&["status", "--watch"]).0
    }

    /// All orders that are over, by their numbers.
    pub(crate) fn results(&self) -> BTreeMap<i64, Value> {
        let (_, facts) = self.fleet(&["results"]);
        facts
            .into_iter()
            .map(|fact| (fact["order"].as_i64().unwrap(), fact))
            .collect()
    }

    /// Calls that were paid for; of them, those whose request had an answer already, and those that nobody knows about.
    pub(crate) fn calls(&self) -> [usize; 3] {
        let (_, costs) = self.fleet(&["costs"]);
        assert_eq!(costs.len(), 1, "{costs:?}");
        ["calls", "again", "unknown"]
            .map(|name| usize::try_from(costs[0][name].as_u64().unwrap()).unwrap())
    }

    /// Fails unless nothing is held of the only cap, and what was spent of it is what calls have cost.
    pub(crate) fn check_budget(&self) {
        let (_, costs) = self.fleet(&["costs"]);
        let (_, status) = self.fleet(&["status"]);
        let budget = &status[0]["budgets"][0];
        assert_eq!(budget["held_usd"], 0.0, "{budget}");
        let usd = |value: &Value| value.as_f64().unwrap();
        assert!(
            (usd(&budget["spent_usd"]) - usd(&costs[0]["usd"])).abs() < 1e-9,
            "{budget} {costs:?}"
        );
    }

    /// Waits until a program has logged one of these words.
    pub(crate) fn wait_for_log(&self, log: &str, words: &[&str]) {
        let log = self.path(log);
        let found = || {
            words
                .iter()
                .any(|word| std::fs::read_to_string(&log).unwrap().contains(word))
        };
        until(words[0], || found().then_some(())).unwrap();
    }

    pub(crate) fn state(&self, order: i64) -> String {
        let (_, facts) = self.fleet(&["status", &order.to_string()]);
        facts[0]["state"].as_str().unwrap().to_owned()
    }

    pub(crate) fn start_gateway(&mut self) {
        self.start_gateway_in(Command::new("env"));
    }

    /// The same, started by another program.
    pub(crate) fn start_gateway_in(&mut self, mut gateway: Command) {
        gateway
            .arg(sibling("code-commit-fleet").unwrap())
            .arg("gateway");
        gateway
            .env("CODE_COMMIT_FLEET_DATABASE", &self.database)
            .envs(&self.environment);
        gateway.args(["--lease", "3", "--patience", "3", "--backoff", "0.1"]);
        gateway.arg("--socket").arg(self.path("gateway.sock"));
        gateway
            .arg("--models")
            .arg(format!("{}:{}", self.host, self.port));
        gateway.args(["--listen", &self.remote()]);
        gateway
            .arg("--upstream")
            .arg(format!("gemini={}", self.vendor.origin()));
        gateway.env("GEMINI_API_KEY", "the-vendors-key");
        if let Some(folder) = &self.certificates {
            gateway.arg("--tls-cert").arg(folder.join("signed.pem"));
            gateway
                .arg("--tls-key")
                .arg(folder.join("localhost-key.pem"));
        }
        let (log, socket) = (self.path("gateway.log"), self.path("gateway.sock"));
        let mut gateway = Program::start(gateway, &log).unwrap();
        let ready = || (UnixStream::connect(&socket).is_ok() || gateway.has_ended()).then_some(());
        until("the gateway", ready).unwrap();
        assert!(
            !gateway.has_ended(),
            "{}",
            std::fs::read_to_string(log).unwrap()
        );
        self.gateway = Some(gateway);
    }

    /// The environment of what `tools/packaging/fleet/up` starts.
    pub(crate) fn for_gateway(&self, mut command: Command) -> Command {
        command.env("CODE_COMMIT_FLEET_DATABASE", &self.database);
        command.env("FLEET_MODELS", format!("{}:{}", self.host, self.port));
        command.env("FLEET_UPSTREAM", format!("gemini={}", self.vendor.origin()));
        command.env("GEMINI_API_KEY", "the-vendors-key");
        command
    }

    pub(crate) fn start_worker(&mut self, number: usize) {
        let worker = Command::new("env");
        self.start_worker_in(worker, number);
    }

    /// The same, started by another program.
    pub(crate) fn start_worker_in(&mut self, mut outer: Command, number: usize) {
        outer.arg(sibling("code-commit-worker").unwrap());
        outer.arg("--socket").arg(self.path("gateway.sock"));
        self.start(outer, number, &product().unwrap());
    }

    /// A worker that carries out orders with another program.
    pub(crate) fn start_worker_with(&mut self, number: usize, program: &Path) {
        let mut worker = Command::new(sibling("code-commit-worker").unwrap());
        worker.arg("--socket").arg(self.path("gateway.sock"));
        self.start(worker, number, program);
    }

    /// A worker that reaches the gateway over TCP.
    pub(crate) fn start_remote_worker(&mut self, number: usize, gateway: &str) {
        let mut worker = Command::new(sibling("code-commit-worker").unwrap());
        worker
            .args(["--gateway", gateway])
            .env("CODE_COMMIT_FLEET_TOKEN", &self.token);
        self.start(worker, number, &product().unwrap());
    }

    fn start(&mut self, mut worker: Command, number: usize, program: &Path) {
        worker
            .arg("--name")
            .arg(format!("worker-{number}"))
            .args(["--slots", "1"]);
        let models = match &self.certificates {
            Some(folder) => {
                worker.arg("--tls-ca").arg(folder.join("authority.pem"));
                format!("https://localhost:{}", self.port)
            }
            None => format!("http://{}:{}", self.host, self.port),
        };
        worker.args(["--models", &models]);
        worker
            .arg("--folder")
            .arg(self.path(&format!("worker-{number}")));
        worker.arg("--program").arg(program);
        // A user's own settings have no part in a test.
        worker
            .env("HOME", self.hub.scratch())
            .envs(&self.environment);
        let log = self.path(&format!("worker-{number}.log"));
        self.workers
            .insert(number, Program::start(worker, &log).unwrap());
    }

    /// Where the gateway listens for other machines.
    pub(crate) fn remote(&self) -> String {
        format!("{}:{}", self.host, self.remote_port)
    }

    /// What a worker of its own making asks of the gateway; the answer's JSON, or null.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post_as(&self.token, path, body);
        assert!((200..300).contains(&status), "{status} {answer}");
        serde_json::from_str(&answer).unwrap_or_default()
    }

    pub(crate) fn worker_token(&self) -> &str {
        &self.token
    }

    /// Posts to the gateway with any token; the status and the answer.
    pub(crate) fn post_as(&self, token: &str, path: &str, body: &Value) -> (u16, String) {
        let headers =
            format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        exchange(&self.remote(), path, &headers, body)
    }

    /// What a program asks of a model.
    pub(crate) fn post_model(&self, path: &str, body: &Value) -> (u16, String) {
        exchange(&format!("{}:{}", self.host, self.port), path, "", body)
    }

    /// Runs the command as somebody who has no more than a token.
    pub(crate) fn fleet_as(&self, token: &str, args: &[&str]) -> (i32, String) {
        let mut command = Command::new(sibling("code-commit-fleet").unwrap());
        command
            .args(args)
            .arg("--json")
            .args(["--gateway", &self.remote()]);
        command
            .args(["--database", "host=/nowhere"])
            .env("CODE_COMMIT_FLEET_TOKEN", token);
        let done = command.stdin(Stdio::null()).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (
            done.status.code().unwrap(),
            String::from_utf8(said).unwrap(),
        )
    }

    /// How often an order was lost.
    pub(crate) fn lost(&self, order: i64) -> i64 {
        self.fleet(&["status", &order.to_string()]).1[0]["lost"]
            .as_i64()
            .unwrap()
    }

    pub(crate) fn start_land(&mut self) {
        let mut land = Command::new(sibling("code-commit-fleet").unwrap());
        land.arg("land").arg("--folder").arg(self.path("land"));
        self.land = Some(Program::start(self.with_database(land), &self.path("land.log")).unwrap());
    }

    /// Waits until the vendor has been asked this often.
    pub(crate) fn wait_for_calls(&self, count: usize) {
        self.vendor.wait_for_requests(count);
    }

    /// Fails unless each of `orders` is in the hub with exactly its own result. Their order is that of the vendor's answers.
    pub(crate) fn check_results(&self, orders: &[i64]) {
        let results = self.results();
        for (number, order) in orders.iter().enumerate() {
            let result = &results[order];
            assert_eq!(result["state"], "passed", "{result}");
            let commit = result["commit"].as_str().unwrap();
            let in_hub = self
                .hub
                .git(&["rev-parse", result["reference"].as_str().unwrap()])
                .unwrap();
            assert_eq!(in_hub.trim(), commit);
            let added = self.hub.added(&self.hub.base, commit).unwrap();
            assert_eq!(
                added,
                [(
                    format!("done/{number:05}.txt"),
                    format!("result-{number:05}\n")
                )]
            );
        }
    }

    fn with_database(&self, mut command: Command) -> Command {
        command
            .env("CODE_COMMIT_FLEET_DATABASE", &self.database)
            .envs(&self.environment);
        command
    }
}

fn exchange(address: &str, path: &str, headers: &str, body: &Value) -> (u16, String) {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

/// Ports that nobody uses at this moment. A gateway that is started again has to find the same ones, so they are below those that
/// the system gives to connections, and no two scenes of a process get the same.
fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    [(); N].map(|()| {
        let free = std::iter::repeat_with(|| {
            let number = std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
            u16::try_from(10_000 + number % 20_000).unwrap()
        });
        free.into_iter()
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .unwrap()
    })
}
