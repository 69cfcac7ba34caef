//! The engines' files, and everything on one machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use code_commit_fixtures::server::{Server, Step};
use rustix::process::Signal;

use crate::scene::{
    DATABASE, PROGRAM, Remote, Running, after, answers, command, has, port, product, run, scene,
    script, until,
};

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/engines");
/// Validates a YAML file with a JSON schema, which may name the definitions beside it.
const VALIDATE: &str = "
import json, pathlib, sys, yaml, jsonschema
file, path = sys.argv[1], pathlib.Path(sys.argv[2])
# YAML takes GitHub's `on` for a truth value.
content = {'on' if name is True else name: value for name, value in yaml.safe_load(open(file)).items()}
schema, beside = json.loads(path.read_text()), path.with_name('_definitions.json')
store = {(other := json.loads(beside.read_text()))['$id']: other} if beside.exists() else {}
resolver = jsonschema.RefResolver(schema.get('$id', ''), schema, store=store)
jsonschema.Draft7Validator(schema, resolver=resolver).validate(content)
";

#[test]
fn jobs_of_kubernetes_and_github_follow_the_published_schemas() {
    let has_yaml = |python: &&str| {
        let probed = Command::new(python)
            .args(["-c", "import yaml, jsonschema"])
            .output();
        probed.is_ok_and(|done| done.status.success())
    };
    let python = ["/usr/bin/python3", "python3"].into_iter().find(has_yaml);
    let (Some(python), Ok(schemas)) = (python, std::env::var("CODE_COMMIT_TEST_SCHEMAS")) else {
        eprintln!(
            "SKIPPED: schemas of Kubernetes and GitHub: set CODE_COMMIT_TEST_SCHEMAS, and install python3-yaml and python3-jsonschema"
        );
        return;
    };
    let of_kubernetes =
        "kubernetes_validate/kubernetes-json-schema/v1.37.0-local/job-batch-v1.json";
    let of_github = "check_jsonschema/builtin_schemas/vendor/github-workflows.json";
    for (file, schema) in [
        ("kubernetes/job.yaml", of_kubernetes),
        ("github/workflow.yml", of_github),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (path, broken) = (
            format!("{ENGINES}/{file}"),
            folder.path().join("broken.yml"),
        );
        let content = fs::read_to_string(&path).unwrap();
        let content = content.replace("completions: 100", "completions: many");
        fs::write(&broken, content.replace("runs-on", "run-on")).unwrap();
        // The schema is one that finds something.
        for (path, is_valid) in [(Path::new(&path), true), (&broken, false)] {
            let mut validate = Command::new(python);
            validate.args(["-W", "ignore", "-c", VALIDATE]).arg(path);
            let done = validate
                .arg(format!("{schemas}/{schema}"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.success(), is_valid, "{file}: {said}");
        }
    }
}

#[test]
fn the_local_engine_tries_again_after_75_and_after_a_kill_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let gateway = file("gateway");
    let cases = "*75:1) exit 75;; *137:1) kill -9 $$;; *never:*) exit 1;;";
    let count = "echo x >>\"$2.tries\"; case $2:$(wc -l <\"$2.tries\") in";
    script(&gateway, &format!("{count} {cases} esac"));
    let names = ["75", "137", "never", "good"];
    let mut engine = command(format!("{ENGINES}/local/run"), "2 repo main");
    let done = engine
        .args(names.map(file))
        .env("CODE_COMMIT_GATEWAY", &gateway)
        .output();
    assert!(!done.unwrap().status.success(), "one has no verdict");
    let tries = |name| {
        fs::read_to_string(file(&format!("{name}.tries")))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(names.map(tries), [2, 2, 1, 1]);
}

#[test]
fn more_orders_than_an_array_can_have_take_several() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    script(&file("scontrol"), "echo 'MaxArraySize            = 3'");
    script(&file("sbatch"), "echo \"$FIRST $*\" >>seen; cat >/dev/null");
    let orders: Vec<_> = (0..7)
        .map(|number| file(&format!("{number}.json")))
        .collect();
    for order in &orders {
        fs::write(order, "{}").unwrap();
    }
    let mut submit = command(format!("{ENGINES}/slurm/submit"), "repo main");
    submit
        .args(&orders)
        .args(["--", "--partition=p"])
        .current_dir(folder.path());
    for name in ["URL", "MODEL", "TOKEN_FILE"] {
        submit.env(format!("CODE_COMMIT_GATEWAY_{name}"), "x");
    }
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    run(submit.env("PATH", path));
    let line = |first, array| {
        format!(
            "{first} --parsable --requeue --export=ALL --array={array} --job-name=code-commit --partition=p\n"
        )
    };
    let expected = [line(0, "0-2"), line(3, "0-2"), line(6, "0-0")].concat();
    assert_eq!(fs::read_to_string(file("seen")).unwrap(), expected);
}

#[test]
fn up_carries_orders_out_on_one_machine_and_goes_on_with_them() {
    // Says so where PostgreSQL is missing.
    let scene = scene!(answers(0, &after(0)), "");
    let vendor = Server::start(answers(6, &Step::default())).unwrap();
    let remote = Remote::new();
    let state = tempfile::tempdir().unwrap();
    run(command("chmod", "755").arg(state.path()));
    let orders: Vec<_> = (0..6).map(|number| remote.order(number)).collect();
    let (log, path) = (scene.file("up.log"), state.path().display());
    let said = || fs::read_to_string(&log).unwrap_or_default();
    let start = || {
        let (repo, origin, port) = (remote.url(), vendor.origin(), port());
        let order = format!("--repo {repo} --base main --model gemini/gemini-2.5-pro --cap 5");
        let words = format!("up {order} --vendor gemini={origin} --listen 127.0.0.1:{port}");
        let mut up = command(PROGRAM, &words);
        up.args(&orders)
            .env("GEMINI_API_KEY", "key")
            .env("XDG_STATE_HOME", state.path());
        up.env("CODE_COMMIT_GATEWAY_PROGRAM", product())
            .env_remove(DATABASE);
        up.env("CODE_COMMIT_GATEWAY_CACHE", scene.file("cache"));
        Running::start(&mut up, &log)
    };
    let finished = |before| {
        until("result", || {
            said().matches("\"finished\"").nth(before).map(drop)
        });
    };
    // All that it has started ends with it.
    let mut killed = start();
    finished(0);
    killed.kill();
    for part in [path.to_string(), remote.url()] {
        let mut left = command("pgrep", "-f --");
        left.arg(part).stdout(Stdio::null());
        until("end", || (!left.status().unwrap().success()).then_some(()));
    }
    let before = said().matches("\"finished\"").count();
    let mut first = start();
    finished(before);
    let mut status = command(PROGRAM, "status");
    status
        .env("XDG_STATE_HOME", state.path())
        .env_remove(DATABASE);
    assert!(run(&mut status).contains("local  default"), "{path}");
    first.signal(Signal::INT);
    assert_eq!(first.wait(), Some(1), "{}", said());
    has(said(), "the same command goes on");
    assert_eq!(start().wait(), Some(0), "{}", said());
    let results = said();
    let results = results
        .lines()
        .filter(|line| line.starts_with("local  order-0000"));
    let passed = results.filter(|line| line.contains("  passed   "));
    assert!(passed.count() >= 6, "{}", said());
    // And at most one more for each call that was under way when it was killed.
    assert!((6..=8).contains(&vendor.requests().len()));
    // One more where the first attempt was stopped between its push and its result.
    let refs = remote.git("for-each-ref refs/code-commit/");
    assert!(refs.lines().count() >= 6, "{refs}");
}
