//! `work` with the real product and a real remote: one result, whatever happens.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use code_commit_fixtures::server::{Hang, Script, Step};
use rustix::process::{Signal, getuid};
use serde_json::{Value, json};

use crate::scene::{
    PROGRAM, Remote, Running, Scene, after, answers, as_nobody, command, has, pick, product, run,
    scene, script,
};

const TOKEN: &str = "CODE_COMMIT_GATEWAY_TOKEN";
/// Names the ordinary program.
const USES: &str = "CODE_COMMIT_GATEWAY_PROGRAM";

/// The arguments of `work`.
fn words(scene: &Scene, remote: &Remote, order: &Path) -> String {
    let (order, cache) = (order.display(), scene.file("cache"));
    format!(
        "work {order} --repo {} --base main --model gemini/gemini-2.5-pro --gateway {} --cache {}",
        remote.url(),
        scene.url,
        cache.display()
    )
}

/// `work` with such arguments, and its environment.
fn with(words: &str, scene: &Scene) -> Command {
    let mut command = command(PROGRAM, words);
    command.env(TOKEN, &scene.worker).env(USES, product());
    command
}

pub(crate) fn work(scene: &Scene, remote: &Remote, order: &Path) -> Command {
    with(&words(scene, remote, order), scene)
}

fn start(scene: &Scene, work: &mut Command) -> Running {
    Running::start(work, &scene.file("work.log"))
}

/// Works until the order has its verdict.
fn finish(scene: &Scene, remote: &Remote, order: &Path) {
    carries_out(scene, &mut work(scene, remote, order));
}

pub(crate) fn carries_out(scene: &Scene, work: &mut Command) {
    assert_eq!(start(scene, work).wait(), Some(0), "{}", log(scene));
}

fn log(scene: &Scene) -> String {
    fs::read_to_string(scene.file("work.log")).unwrap_or_default()
}

/// The result of the only order, whose commit the remote must have.
fn result(scene: &Scene, remote: &Remote) -> Value {
    let mut results = scene.table("results");
    assert_eq!(results.len(), 1, "{results:?}");
    let result = results.remove(0);
    if let (Some(commit), Some(name)) = (result["commit"].as_str(), result["reference"].as_str()) {
        assert_eq!(remote.git(&format!("rev-parse {name}")).trim(), commit);
        let content = remote.git(&format!("show {commit}:done/00000.txt"));
        assert_eq!(content, "result-00000\n");
    }
    result
}

#[test]
fn an_order_that_passes_has_its_commit_in_the_remote_and_its_run_folder_in_the_database() {
    let scene = scene!(answers(1, &after(0)), "");
    let remote = Remote::new();
    let order = remote.order(0);
    // What the program leaves in its clone does nothing to the push.
    let (mut worker, spy) = (work(&scene, &remote, &order), scene.file("spy"));
    let left = format!("git -C repo config url./nowhere.insteadOf {}", remote.url());
    script(&spy, &format!("{} \"$@\" && {left}", product().display()));
    worker.env(USES, &spy);
    carries_out(&scene, &mut worker);
    finish(&scene, &remote, &order);
    let result = result(&scene, &remote);
    assert_eq!(pick(&result, ["verdict", "attempts"]), json!(["passed", 1]));
    assert_eq!(scene.asked(), 1);
    let bundle = scene.bundle("order-00000");
    let names = run(&mut command("tar", &format!("--zstd -tf {bundle}")));
    has(&names, "run_summary.json");
    has(&names, "events.jsonl");
    // Nothing but the mirror stays, and that does not know where it comes from.
    let words = format!("-rl {} {}", remote.url(), scene.file("cache").display());
    let named = command("grep", &words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&named.stdout), "");
    let shared = format!("{} -type f -links +1", scene.file("cache").display());
    assert_eq!(run(&mut command("find", &shared)), "");
}

#[test]
fn an_order_that_fails_has_a_verdict_too() {
    let wrong = json!({ "summary": "no", "writes": [] }).to_string();
    let scene = scene!(
        Script::default().rule("order-00000.", Step::text(&wrong)),
        ""
    );
    let remote = Remote::new();
    finish(&scene, &remote, &remote.order(0));
    let result = result(&scene, &remote);
    let fields = pick(&result, ["verdict", "commit"]);
    assert_eq!(fields, json!(["failed", null]));
    assert_ne!(result["reason"], "");
}

#[test]
fn a_worker_that_is_killed_is_replaced_and_nothing_is_paid_twice() {
    let scene = scene!(answers(1, &after(1500)), "");
    let remote = Remote::new();
    let order = remote.order(0);
    let mut first = start(&scene, &mut work(&scene, &remote, &order));
    scene.vendor.wait_for_requests(1);
    first.kill();
    finish(&scene, &remote, &order);
    assert_eq!(result(&scene, &remote)["attempts"], 2);
    assert_eq!(scene.asked(), 1, "the first one's answer is kept");
}

#[test]
fn two_workers_of_one_order_at_once_bring_one_result() {
    let scene = scene!(answers(1, &after(1500)), "");
    let remote = Remote::new();
    let order = remote.order(0);
    let mut first = start(&scene, &mut work(&scene, &remote, &order));
    scene.vendor.wait_for_requests(1);
    finish(&scene, &remote, &order);
    assert_eq!(first.wait(), Some(0), "{}", log(&scene));
    assert_eq!(result(&scene, &remote)["attempts"], 2);
    assert_eq!(scene.asked(), 1);
    has(log(&scene), "a newer attempt has begun");
}

#[test]
fn a_worker_that_is_stopped_gives_up_within_ten_seconds() {
    let scene = scene!(answers(1, &after(60_000)), "");
    let remote = Remote::new();
    let mut worker = start(&scene, &mut work(&scene, &remote, &remote.order(0)));
    scene.vendor.wait_for_requests(1);
    let begun = Instant::now();
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait(), Some(75));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(result(&scene, &remote)["reason"], "interrupted");
}

#[test]
fn a_gateway_and_a_database_that_go_and_come_back_lose_nothing() {
    let mut scene = scene!(answers(1, &after(1500)), "");
    let remote = Remote::new();
    let mut worker = start(&scene, &mut work(&scene, &remote, &remote.order(0)));
    scene.vendor.wait_for_requests(1);
    scene.postgres.stop_immediately();
    scene.serve.kill();
    scene.postgres.begin();
    scene.restart();
    assert_eq!(worker.wait(), Some(0), "{}", log(&scene));
    assert_eq!(result(&scene, &remote)["verdict"], "passed");
    assert_eq!(scene.asked(), 2);
    // What was paid twice is listed.
    assert_eq!(scene.table("costs --doubtful").len(), 1);
}

#[test]
fn trouble_that_may_pass_is_75_and_what_never_will_is_1() {
    let scene = scene!(answers(1, &after(0)), "");
    let remote = Remote::new();
    let order = remote.order(0);
    let code = |from: &str, to: &str, token: &str| {
        let words = words(&scene, &remote, &order).replace(from, to);
        let mut worker = with(&words, &scene);
        start(&scene, worker.env(TOKEN, token)).wait()
    };
    let worker = &*scene.worker;
    assert_eq!(code("hub.git", "nowhere.git", worker), Some(75));
    scene.admin("cap batch:b 0");
    assert_eq!(code("", "", worker), Some(75), "no money: {}", log(&scene));
    let reason = scene.table("results")[0]["reason"].to_string();
    has(&reason, "code-commit ended with 4");
    for (from, to, token) in [
        ("--base", "--batch other --base", worker),
        ("--base main", "--base typo", worker),
        ("--base", "--unknown --base", worker),
        ("--repo /", "--repo https://user:password@host/", worker),
        ("", "", "guess"),
    ] {
        assert_eq!(code(from, to, token), Some(1), "{to}: {}", log(&scene));
    }
    assert!(!log(&scene).contains("password@"), "{}", log(&scene));
    // A refusal may be this machine's fault. Twice the same is not.
    let codes = [(); 2].map(|()| code("gemini/", "nobody/", worker));
    assert_eq!(codes, [Some(75), Some(1)], "{}", log(&scene));
    fs::write(&order, "{}").unwrap();
    assert_eq!(code("", "", worker), Some(1), "not an order");
    assert!(scene.vendor.requests().is_empty());
}

#[test]
fn the_orders_program_sees_neither_tokens_nor_credentials() {
    let hangs = Step {
        hang: Some(Hang::After(250)),
        ..Step::text("hello")
    };
    let busy = Script::default().rule(":generateContent", Step::status(503));
    let scene = scene!(busy.rule("streamGenerateContent", hangs), "");
    let remote = Remote::new();
    let order = remote.order(0);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (spy, seen) = (file("spy"), file("seen"));
    let looks = "env; cat /proc/$PPID/environ; cat repo/.git/config; ls -A \"$HOME\"";
    let model = "$GOOGLE_GEMINI_BASE_URL/v1beta/models/gemini-2.5-pro";
    let asks = format!(
        "curl -sNm 2 -d {{}} {model}:generateContent '{model}:streamGenerateContent?alt=sse'"
    )
    .replace('\'', "\"");
    script(
        Path::new(&spy),
        &format!("exec >{seen} 2>&1; {looks}; {asks}; exit 70"),
    );
    // Left by somebody else: nobody ever writes to it.
    fs::create_dir(file("code-commit-work-x")).unwrap();
    run(&mut command("mkfifo", &file("code-commit-work-x/lock")));
    if getuid().is_root() {
        // Root would read everything.
        let owned = format!(
            "{} {}",
            folder.path().display(),
            order.parent().unwrap().display()
        );
        run(&mut command("chown", &format!("-R 65534:65534 {owned}")));
    }
    let words = words(&scene, &remote, &order);
    let words = words.replace(&scene.file("cache").display().to_string(), &file("cache"));
    let mut command = as_nobody(PROGRAM, &words);
    command
        .env("TMPDIR", folder.path())
        .env("HOME", folder.path());
    for (name, secret) in [
        (USES, &*spy),
        (TOKEN, &*scene.worker),
        ("SSH_AUTH_SOCK", "socket"),
        ("GEMINI_API_KEY", "a-real-key"),
    ] {
        command.env(name, secret);
    }
    let code = start(&scene, &mut command).wait();
    assert_eq!(code, Some(75), "{}", log(&scene));
    let seen = fs::read_to_string(seen).unwrap();
    has(&seen, "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:");
    has(&seen, "environ: Permission denied");
    // An answer comes as the vendor sends it, and the vendor's trouble is the program's own to bear.
    has(&seen, "503");
    has(&seen, "hel");
    assert_eq!(scene.asked(), 2);
    for secret in [&*scene.worker, "SSH_AUTH_SOCK", "a-real-key", "/hub.git"] {
        assert!(!seen.contains(secret), "{secret}: {seen}");
    }
}
