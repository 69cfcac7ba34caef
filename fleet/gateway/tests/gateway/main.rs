//! A gateway between the product's own clients and scripted vendors, with a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod monitors;
mod people;
mod requests;
mod tls;

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use code_commit_fixtures::server::{Hang, Script, Server, Step};
use code_commit_fleet_gateway::{Service, Setup};
use code_commit_fleet_store::{Filter, Nanodollars, NewOrder, Role, Scope, Store, Terms};
use code_commit_fleet_trial::Database;
use code_commit_fleet_wire::{Ask, Lease};
use code_commit_llm::http::{Agent, BaseUrl, Limits, Network, Post};
use code_commit_llm::{
    Blind, CallError, Client, Dialect, Model as _, ModelId, Progress, Reply, Request, Retry,
    Secret, Waited, Watch,
};
use code_commit_llm_anthropic::Anthropic;
use code_commit_llm_gemini::Gemini;
use code_commit_llm_openai::{OpenAi, Responses};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A gateway and what it stands between.
struct Scene {
    vendor: Server,
    store: Store,
    models: String,
    workers: String,
    /// The header of a worker.
    token: String,
    // Ends the gateway when dropped.
    end: watch::Sender<bool>,
    running: JoinHandle<anyhow::Result<()>>,
    folder: tempfile::TempDir,
    database: Database,
}

impl Scene {
    async fn new(script: Script) -> Option<Self> {
        Self::with(script, |_| ()).await
    }

    /// The same, set up in another way.
    async fn with(script: Script, change: impl FnOnce(&mut Setup)) -> Option<Self> {
        let database = Database::create().unwrap()?;
        let store = Store::migrate(&database.address()).await.unwrap();
        let vendor = Server::start(script).unwrap();
        let (origin, folder) = (vendor.origin(), tempfile::tempdir().unwrap());
        let openai = format!("{origin}/v1");
        let services = [
            ("gemini", origin),
            ("anthropic", origin),
            ("openai", openai.as_str()),
        ];
        let services =
            services.map(|(name, base)| Service::new(name, Some(base), "vendor-key").unwrap());
        let models = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remote = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let (models_at, workers) = (address(&models), address(&remote));
        let mut setup = Setup {
            terms: Terms::default(),
            socket: folder.path().join("socket"),
            remote: Some(remote),
            models,
            tls: None,
            services: services.to_vec(),
            interval: None,
            retain: None,
            patience: Duration::from_mins(1),
            calls: code_commit_fleet_gateway::CALLS,
        };
        change(&mut setup);
        let (end, ended) = watch::channel(false);
        let running = tokio::spawn(code_commit_fleet_gateway::run(store.clone(), setup, ended));
        let token = store
            .make_token("worker", Role::Worker, None)
            .await
            .unwrap()
            .unwrap();
        let token = format!("Bearer {token}");
        Some(Self {
            vendor,
            store,
            models: models_at,
            workers,
            token,
            end,
            running,
            folder,
            database,
        })
    }

    async fn submit(&self, content: &str, record: i32) {
        let order = NewOrder {
            tenant: "a".into(),
            batch: None,
            repo: "/hub".into(),
            base: "b".repeat(40),
            content: content.into(),
            model: "gemini-2.5-pro".into(),
            priority: 0,
            after: None,
            land: None,
            record,
            traceparent: None,
        };
        self.store.submit(&[order], None).await.unwrap();
    }

    async fn leased(&self, content: &str) -> Lease {
        self.submit(content, code_commit_fleet_wire::RECORD).await;
        let ask = Ask {
            worker: "w".into(),
            version: "0".into(),
            record: code_commit_fleet_wire::RECORD,
            wait_ms: 0,
        };
        self.store
            .lease(&ask, &Terms::default())
            .await
            .unwrap()
            .unwrap()
            .lease
    }

    /// The value of a metric without labels.
    async fn metric(&self, name: &str) -> Option<u64> {
        let (_, page) = get(format!("{}/metrics", self.models), None).await;
        page.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// Where the program of this lease finds its models.
    fn base(&self, lease: &Lease) -> BaseUrl {
        format!("{}/m/{}", self.models, lease.token)
            .parse()
            .unwrap()
    }

    fn gemini(&self, lease: &Lease) -> Gemini {
        Gemini::new(
            self.base(lease),
            model("gemini", "gemini-2.5-pro"),
            Secret::new("fleet"),
        )
    }
}

fn model(provider: &str, name: &str) -> ModelId {
    ModelId::new(provider, name).unwrap()
}

/// Asks as the program does, but once.
async fn ask(dialect: impl Dialect + 'static, stream: bool) -> Result<Reply, CallError> {
    ask_and_watch(dialect, stream, Blind).await
}

async fn ask_and_watch(
    dialect: impl Dialect + 'static,
    stream: bool,
    mut watch: impl Watch + Send + 'static,
) -> Result<Reply, CallError> {
    let call = move || {
        let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
        let once = Retry {
            max_tries: 1,
            ..Retry::default()
        };
        let request = Request {
            prompt: "say it",
            stream,
            ..Request::default()
        };
        Client::new(agent, dialect)
            .with_retry(once)
            .call(&request, &mut watch)
    };
    tokio::task::spawn_blocking(call).await.unwrap()
}

async fn get(url: String, key: Option<&str>) -> (u16, String) {
    let key = key.map(|key| ("authorization", Secret::new(key)));
    fetch(Post {
        url,
        headers: Vec::new(),
        key,
        body: Arc::default(),
    })
    .await
}

async fn post(url: String, body: &str) -> (u16, String) {
    fetch(Post {
        url,
        headers: Vec::new(),
        key: None,
        body: Arc::new(body.into()),
    })
    .await
}

async fn fetch(post: Post) -> (u16, String) {
    let fetch = move || {
        let agent = Agent::new(Network::default(), Limits::default());
        let mut exchange = agent.send(&post, None, &mut Blind).unwrap();
        let body = exchange.read_to_end(1 << 20, &mut Blind).unwrap();
        (exchange.head.status, String::from_utf8(body).unwrap())
    };
    tokio::task::spawn_blocking(fetch).await.unwrap()
}

#[tokio::test]
async fn each_format_is_passed_through_with_the_vendors_key_and_kept() {
    let Some(scene) = Scene::new(Script::default().rule("say it", Step::text("hello"))).await
    else {
        return;
    };
    let lease = scene.leased("one").await;
    let (base, key) = (scene.base(&lease), Secret::new("fleet"));
    for stream in [true, false] {
        for _again in 0..2 {
            let claude = Anthropic::new(
                base.clone(),
                model("anthropic", "claude-fable-5-1"),
                key.clone(),
            );
            let replies = [
                ask(scene.gemini(&lease), stream).await,
                ask(claude.with_max_output(1000), stream).await,
                ask(
                    OpenAi::new(base.clone(), model("openai", "gpt-x"), key.clone()),
                    stream,
                )
                .await,
                ask(
                    Responses::new(base.clone(), model("openai", "gpt-x"), key.clone()),
                    stream,
                )
                .await,
            ];
            for reply in replies {
                let reply = reply.unwrap();
                assert_eq!(reply.text, "hello");
                assert!(reply.usage.total().is_some());
            }
        }
    }
    let seen = scene.vendor.requests();
    assert_eq!(seen.len(), 8, "four formats, streamed and not, each once");
    for request in seen {
        let keys =
            ["x-goog-api-key", "x-api-key", "authorization"].map(|name| request.header(name));
        let sent: Vec<&str> = keys.into_iter().flatten().collect();
        assert!(
            sent == ["vendor-key"] || sent == ["Bearer vendor-key"],
            "{sent:?}"
        );
    }
    let costs = scene.store.costs(&Filter::default()).await.unwrap();
    let known: Vec<(&str, i64, i64)> = costs
        .iter()
        .map(|cost| (cost.model.as_str(), cost.calls, cost.unknown))
        .collect();
    assert_eq!(
        known,
        [
            ("claude-fable-5-1", 2, 0),
            ("gemini-2.5-pro", 2, 0),
            ("gpt-x", 4, 0)
        ]
    );
}

/// Cancels once it has seen text.
#[derive(Debug, Clone, Default)]
struct Impatient(Arc<Mutex<String>>);

impl Watch for Impatient {
    fn progress(&mut self, progress: Progress<'_>) {
        if let Progress::Text(text) = progress {
            self.0.lock().unwrap().push_str(text);
        }
    }

    fn cancelled(&self) -> bool {
        !self.0.lock().unwrap().is_empty()
    }

    fn wait(&mut self, _: Duration) -> Waited {
        Waited::Cancelled
    }
}

#[tokio::test]
async fn a_stream_arrives_while_the_vendor_still_writes() {
    // It hangs forever before the end of its body.
    let script = Script::new([Step::text("hello world").hang(Hang::BeforeEnd)]);
    let Some(scene) = Scene::new(script).await else {
        return;
    };
    let lease = scene.leased("one").await;
    let watch = Impatient::default();
    let ended = ask_and_watch(scene.gemini(&lease), true, watch.clone()).await;
    assert!(matches!(ended, Err(CallError::Cancelled)), "{ended:?}");
    assert!("hello world".starts_with(watch.0.lock().unwrap().as_str()));
}

#[tokio::test]
async fn an_answer_that_breaks_off_breaks_off_for_the_program_and_counts_in_full() {
    let Some(scene) = Scene::new(Script::new([Step::text("hello world").cut_after(40)])).await
    else {
        return;
    };
    let lease = scene.leased("one").await;
    let ended = ask(scene.gemini(&lease), true).await;
    assert!(
        matches!(ended, Err(CallError::StreamCut { .. })),
        "{ended:?}"
    );
    let cost = scene
        .store
        .costs(&Filter::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!((cost.calls, cost.unknown), (1, 1));
    assert!(
        cost.usd > 0.6,
        "65,536 tokens of output are reserved: {cost:?}"
    );
}

#[tokio::test]
async fn past_a_cap_nobody_is_asked_and_the_program_is_told_whose_it_is() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let lease = scene.leased("one").await;
    scene
        .store
        .cap(
            &Scope::Tenant("a".into()),
            Nanodollars::from_usd(0.5).unwrap(),
        )
        .await
        .unwrap();
    let ended = ask(scene.gemini(&lease), true).await;
    let Err(CallError::Billing { message }) = ended else {
        panic!("{ended:?}")
    };
    assert!(
        message.starts_with("tenant:a has $0.5000 left, and the call may cost $0.65"),
        "{message}"
    );
    assert!(scene.vendor.requests().is_empty());
}

#[tokio::test]
async fn a_vendor_that_asks_one_of_us_to_wait_is_left_alone_by_all() {
    let script =
        Script::new([Step::status(429).retry_delay("100s")]).rule("other", Step::text("hello"));
    let Some(scene) = Scene::new(script).await else {
        return;
    };
    let (one, two) = (scene.leased("one").await, scene.leased("two").await);
    for lease in [one, two] {
        let ended = ask(scene.gemini(&lease), true).await;
        let Err(CallError::RateLimited {
            retry_after: Some(wait),
            ..
        }) = ended
        else {
            panic!("{ended:?}")
        };
        assert!(wait > Duration::from_secs(90), "{wait:?}");
    }
    assert_eq!(scene.vendor.requests().len(), 1);
    let cost = scene.store.costs(&Filter::default()).await.unwrap();
    assert!(cost.is_empty(), "nothing was charged");
}

#[tokio::test]
async fn a_lease_that_is_gone_opens_nothing() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let lease = scene.leased("one").await;
    scene.store.cancel(&Filter::default()).await.unwrap();
    let ended = ask(scene.gemini(&lease), true).await;
    assert!(
        matches!(ended, Err(CallError::NoPermission { .. })),
        "{ended:?}"
    );
    let free = scene.base(&lease).join("/v1beta/models/gemini-2.5-pro");
    assert_eq!(get(free, None).await.0, 403, "not even what costs nothing");
    assert!(scene.vendor.requests().is_empty());
}

#[tokio::test]
async fn from_another_machine_nobody_gets_in_without_the_token() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    // GET is none of the methods there; whether it is allowed at all is decided first.
    let url = || format!("{}/v1/lease", scene.workers);
    assert_eq!(get(url(), None).await.0, 401);
    assert_eq!(get(url(), Some("Bearer guess")).await.0, 401);
    assert_eq!(get(url(), Some(&scene.token)).await.0, 405);
    assert!(scene.folder.path().join("socket").exists());
}

#[tokio::test]
async fn a_gateway_that_is_asked_to_end_stores_the_answer_that_nobody_waits_for() {
    let script = Script::new([Step {
        delay_ms: 1000,
        ..Step::text("hello")
    }]);
    let Some(scene) = Scene::new(script).await else {
        return;
    };
    let lease = scene.leased("one").await;
    let path = format!(
        "/m/{}/v1beta/models/gemini-2.5-pro:generateContent",
        lease.token
    );
    let address = scene.models.strip_prefix("http://").unwrap();
    let mut program = std::net::TcpStream::connect(address).unwrap();
    write!(
        program,
        "POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    code_commit_fleet_trial::until_async("the call", || async {
        (!scene.vendor.requests().is_empty()).then_some(())
    })
    .await
    .unwrap();
    // Its worker was killed.
    drop(program);
    scene.end.send(true).unwrap();
    scene.running.await.unwrap().unwrap();
    let cost = scene
        .store
        .costs(&Filter::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!((cost.calls, cost.unknown), (1, 0), "{cost:?}");
}

#[tokio::test]
async fn of_many_workers_that_wait_one_looks_for_orders() {
    const WORKERS: u64 = 20;
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let ask = Ask {
        worker: "w".into(),
        version: "0".into(),
        record: code_commit_fleet_wire::RECORD,
        wait_ms: 30_000,
    };
    let ask = serde_json::to_string(&ask).unwrap();
    let socket = scene.folder.path().join("socket");
    code_commit_fleet_trial::until_async("the gateway", || async { socket.exists().then_some(()) })
        .await
        .unwrap();
    let wait = || {
        let mut worker = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let head = "POST /v1/lease HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json";
        write!(
            worker,
            "{head}\r\ncontent-length: {}\r\n\r\n{ask}",
            ask.len()
        )
        .unwrap();
        worker
    };
    let workers: Vec<_> = (0..WORKERS).map(|_| wait()).collect();
    let all_wait =
        || async { (scene.metric("fleet_waiting_slots").await == Some(WORKERS)).then_some(()) };
    code_commit_fleet_trial::until_async("the workers", all_wait)
        .await
        .unwrap();
    // There is news five times, and it is nothing that these workers can carry out.
    let before = scene.metric("fleet_looks_total").await.unwrap();
    for content in ["a", "b", "c", "d", "e"] {
        scene
            .submit(content, code_commit_fleet_wire::RECORD + 1)
            .await;
    }
    scene.submit("f", code_commit_fleet_wire::RECORD).await;
    let one_is_served =
        || async { (scene.metric("fleet_waiting_slots").await? < WORKERS).then_some(()) };
    code_commit_fleet_trial::until_async("an order for one of them", one_is_served)
        .await
        .unwrap();
    let looks = scene.metric("fleet_looks_total").await.unwrap() - before;
    assert!(looks < WORKERS, "{looks} looks");
    drop(workers);
}
