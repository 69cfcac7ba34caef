//! A PASS is earned: what would be green without the change is named, and with `--strict` it is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::files;
use crate::scenes::order::{BAD, FILES, GOOD, Scene, greet, proposal};
use crate::scenes::program::{Ran, interrupt};

/// Scripts of the project, beside [`FILES`].
const SCRIPTS: [(&str, &str); 4] = [
    ("tests/empty.sh", ""),
    (
        "tests/comments.sh",
        "#!/bin/sh\n# To be written.\n\nset -eu\n",
    ),
    (
        "tests/early.sh",
        "#!/bin/sh\necho all tests passed\nexit 0\ntest -e src/none\n",
    ),
    ("tests/fish.sh", "#!/no/such/fish\nexit 1\n"),
];
const PASS: &str = "PASS success";
const PREFLIGHT: &str = "FAIL preflight";
/// There is no run.
const REFUSED: &str = "refused";

/// An order that is or is not to be believed.
struct Kind {
    name: &'static str,
    /// Other fields of the order.
    over: Value,
    /// Another `scripts/verify.sh`.
    verify: Option<&'static str>,
    replies: Vec<String>,
    /// How it ends, and the codes of what it does not prove.
    ends: (&'static str, &'static [&'static str]),
    /// How it ends with `--strict`.
    strict: &'static str,
}

impl Kind {
    fn order(name: &'static str, over: Value) -> Self {
        Self {
            name,
            over,
            verify: None,
            replies: vec![greet(GOOD)],
            ends: (PASS, &[]),
            strict: PASS,
        }
    }

    /// Accepted by these commands alone.
    fn accepted(name: &'static str, commands: &[&str]) -> Self {
        Self::order(name, json!({ "acceptance_commands": commands }))
    }

    fn cannot_fail(name: &'static str, command: &str) -> Self {
        let ends = (PASS, &["cannot-fail", "already-green"][..]);
        Self {
            ends,
            strict: REFUSED,
            ..Self::accepted(name, &[command])
        }
    }

    /// Green before, as the only command.
    fn green(name: &'static str, command: &str) -> Self {
        let ends = (PASS, &["already-green", "already-green"][..]);
        Self {
            ends,
            strict: PREFLIGHT,
            ..Self::accepted(name, &[command])
        }
    }

    fn verified(name: &'static str, script: &'static str) -> Self {
        let ends = (PASS, &["cannot-fail"][..]);
        Self {
            verify: Some(script),
            ends,
            strict: REFUSED,
            ..Self::order(name, json!({}))
        }
    }

    fn refused(name: &'static str, over: Value) -> Self {
        Self {
            ends: (REFUSED, &[]),
            strict: REFUSED,
            ..Self::order(name, over)
        }
    }

    /// A reply that writes this script, which decides.
    fn written(
        name: &'static str,
        path: &str,
        old: Option<&str>,
        new: &str,
        command: &str,
    ) -> Self {
        let over = json!({ "acceptance_commands": [command], "allowed_files": [path], "context_files": [] });
        Self {
            replies: vec![proposal(path, old, new); 2],
            ..Self::order(name, over)
        }
    }

    fn scene(&self) -> Scene {
        let mut files = FILES.to_vec();
        files.extend(SCRIPTS);
        if let Some(script) = self.verify {
            files[1].1 = script;
        }
        let scene = Scene::scripted(
            &files,
            Script::new(self.replies.iter().map(|reply| Step::text(reply))),
        );
        for script in ["tests/early.sh", "tests/fish.sh"] {
            fs::set_permissions(scene.root().join(script), fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        scene.project.commit("programs").unwrap();
        scene.place_order(&self.over);
        scene
    }

    /// The verdict and the doubts, of a run that leaves nothing behind unless it passes.
    fn run(&self, more: &[&str]) -> (String, Vec<String>) {
        let scene = self.scene();
        let before = scene.state();
        let ran = scene.run(&[&["--timeout-seconds", "20"], more].concat());
        let (verdict, doubts) = match scene.runs().len() {
            0 => (REFUSED.to_owned(), Vec::new()),
            _ => (scene.verdict(), doubts(&scene)),
        };
        assert_eq!(ran.code == Some(0), verdict == PASS, "{}: {ran}", self.name);
        if verdict != PASS {
            assert_eq!(scene.state(), before, "{}: {ran}", self.name);
        }
        if [REFUSED, PREFLIGHT].contains(&&*verdict) {
            assert_eq!(
                (ran.code, scene.server.requests().len()),
                (Some(3), 0),
                "{}: {ran}",
                self.name
            );
        }
        (verdict, doubts)
    }
}

/// The codes of what the only run does not prove.
fn doubts(scene: &Scene) -> Vec<String> {
    let journal = scene.recorded("events.jsonl");
    let lines = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter_map(|line| Some(line["fact"]["doubt"]["code"].as_str()?.to_owned()))
        .collect()
}

fn hostile() -> Vec<Kind> {
    let template: Value = serde_json::from_str(code_commit_loop_order::TEMPLATE).unwrap();
    let mut renamed = template.clone();
    renamed["id"] = json!("mine");
    let broken = |kind: Kind| Kind {
        ends: (PASS, &["cannot-fail"]),
        strict: "FAIL acceptance_failed",
        ..kind
    };
    let must_fail =
        json!({ "acceptance_commands": ["test -d src"], "must_fail_before": ["test -d src"] });
    vec![
        Kind::cannot_fail("true", "true"),
        Kind::cannot_fail("only words", "echo all tests passed"),
        Kind::cannot_fail("exit 0", "sh -c 'exit 0'"),
        Kind::cannot_fail("a colon", "bash -c ':'"),
        Kind::cannot_fail("an empty script", "sh tests/empty.sh"),
        Kind::cannot_fail("only comments", "sh ./tests/comments.sh"),
        Kind::cannot_fail("a script that ends before its tests", "bash tests/early.sh"),
        Kind::cannot_fail("the same, started without a shell", "./tests/early.sh"),
        Kind::verified("an empty verification", ""),
        Kind::verified("a verification of words", "#!/bin/sh\necho verified\n"),
        Kind::green("a file that is there", "test -f src/greet.sh"),
        Kind::green("only the syntax", "sh -n src/greet.sh"),
        Kind::green(
            "a failure that is ignored",
            "sh -c 'sh tests/run.sh || true'",
        ),
        Kind::green(
            "a failure that is followed by success",
            "sh -c 'sh tests/run.sh; true'",
        ),
        Kind::green("the old text", "grep -q hello src/greet.sh"),
        Kind::green(
            "a test that tests nothing of it",
            "sh -c 'test $(cat src/other.txt) = other'",
        ),
        Kind {
            ends: (PASS, &["already-green"]),
            strict: PREFLIGHT,
            ..Kind::accepted("one of two", &["sh tests/run.sh", "test -d src"])
        },
        Kind {
            ends: (PREFLIGHT, &[]),
            strict: PREFLIGHT,
            ..Kind::order("one that has to fail before and does not", must_fail)
        },
        broken(Kind::written(
            "a new test of nothing",
            "tests/new.sh",
            None,
            "exit 0\n",
            "sh tests/new.sh",
        )),
        broken(Kind::written(
            "a test taken out",
            "tests/run.sh",
            Some(FILES[4].1),
            "#!/bin/sh\n",
            "sh tests/run.sh",
        )),
        broken(Kind {
            ends: (PASS, &["cannot-fail"]),
            ..Kind::written(
                "a verification taken out",
                "scripts/verify.sh",
                Some(FILES[1].1),
                "true\n",
                "grep -q true scripts/verify.sh",
            )
        }),
        Kind::refused("the template", template),
        Kind::refused("the template under another name", renamed),
        Kind::refused(
            "a script for a program that is not there",
            json!({ "acceptance_commands": ["./tests/fish.sh"] }),
        ),
        Kind::refused(
            "a program that is not there",
            json!({ "acceptance_commands": ["no-such-program"] }),
        ),
    ]
}

fn honest() -> Vec<Kind> {
    let new = proposal("src/new.sh", None, "printf new\n");
    let made = "sh -c 'mkdir -p build; cp src/new.sh build/x; chmod +x build/x'";
    let condition = |field: &str| json!([{ field: "src/new.sh" }]);
    let written = |kind: Kind| Kind {
        replies: vec![new.clone()],
        ..kind
    };
    vec![
        Kind::order("a test that fails before", json!({})),
        Kind::order(
            "one that has to fail before",
            json!({ "must_fail_before": ["sh tests/run.sh"] }),
        ),
        Kind::accepted(
            "two that fail before",
            &["sh tests/run.sh", "grep -q 'hello, ' src/greet.sh"],
        ),
        Kind::accepted("the same twice", &["sh tests/run.sh", "sh tests/run.sh"]),
        written(Kind::accepted("a file that comes", &["test -f src/new.sh"])),
        written(Kind::accepted("a program that comes", &[made, "./build/x"])),
        written(Kind::order(
            "conditions",
            json!({
                "acceptance_commands": ["sh src/new.sh"],
                "preconditions": condition("file_absent"),
                "postconditions": condition("file_exists"),
            }),
        )),
        Kind::written(
            "a new test",
            "tests/new.sh",
            None,
            "test \"$(cat src/other.txt)\" = other\n",
            "sh tests/new.sh",
        ),
        Kind::accepted(
            "by-products",
            &["sh -c 'mkdir -p ignored; touch ignored/x trace; sh tests/run.sh'"],
        ),
        Kind::accepted(
            "words after a test",
            &["sh -c 'set -e; sh tests/run.sh; echo done'"],
        ),
        Kind::accepted(
            "killed before",
            &["sh -c 'grep -q , src/greet.sh || kill -9 $$'"],
        ),
        Kind::accepted(
            "printing without end before",
            &["sh -c 'grep -q , src/greet.sh || yes'"],
        ),
        Kind {
            verify: Some("sh -n src/greet.sh\nexit 0\n"),
            ..Kind::order("a verification that ends well", json!({}))
        },
        Kind {
            replies: vec![greet(BAD), greet(GOOD)],
            ..Kind::order("the second attempt", json!({}))
        },
    ]
}

#[test]
fn no_hostile_order_gets_a_green_that_it_has_not_earned() {
    let kinds = hostile();
    for kind in &kinds {
        let (verdict, doubts) = kind.run(&[]);
        assert_eq!(
            (verdict.as_str(), &doubts[..]),
            (
                kind.ends.0,
                &kind
                    .ends
                    .1
                    .iter()
                    .map(|code| (*code).to_owned())
                    .collect::<Vec<_>>()[..]
            ),
            "{}",
            kind.name
        );
        assert!(
            verdict != PASS || !doubts.is_empty(),
            "{}: an unearned green",
            kind.name
        );
        assert_eq!(kind.run(&["--strict"]).0, kind.strict, "{}", kind.name);
    }
    assert!(kinds.len() >= 20 && kinds.iter().all(|kind| kind.strict != PASS));
}

#[test]
fn every_honest_order_is_green_and_proves_it() {
    let kinds = honest();
    for kind in &kinds {
        assert_eq!(
            kind.run(&["--strict"]),
            (PASS.to_owned(), Vec::new()),
            "{}",
            kind.name
        );
    }
    assert!(kinds.len() >= 13);
}

/// An order whose command notes each time that it runs, beside the repository.
fn counted(replies: Vec<Step>) -> Scene {
    let scene = Scene::scripted(&FILES, Script::new(replies));
    scene.place_order(
        &json!({ "acceptance_commands": ["sh -c 'echo >> ../runs; sh tests/run.sh'"] }),
    );
    scene
}

fn runs(scene: &Scene) -> usize {
    fs::read_to_string(scene.beside("runs"))
        .unwrap_or_default()
        .len()
}

#[test]
fn the_base_is_tried_once_whatever_follows_and_never_in_a_dry_run() {
    let scene = counted(
        [
            Step::status(401),
            Step::text(&greet(BAD)),
            Step::text(&greet(GOOD)),
        ]
        .into(),
    );
    assert_eq!((scene.run(&["--dry-run"]).code, runs(&scene)), (Some(0), 0));
    assert_eq!((scene.run(&[]).code, runs(&scene)), (Some(4), 1));
    let resumed = Ran::of(scene.program(&["resume"]).env("OPENAI_API_KEY", "k"));
    assert_eq!((resumed.code, runs(&scene)), (Some(0), 3), "{resumed}");
}

#[test]
fn a_command_on_the_base_is_shown_and_ctrl_c_ends_it_before_anything_is_paid() {
    let scene = Scene::with(&[&greet(GOOD)]);
    let wait = "sh -c 'touch ../begun stray; test -e ../go-on || sleep 600; sh tests/run.sh'";
    scene.place_order(&json!({ "acceptance_commands": ["test -d src", wait] }));
    let before = scene.state();
    let mut child = scene
        .command(&[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !scene.beside("begun").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    interrupt(&child);
    assert_eq!(
        (child.wait().unwrap().code(), scene.server.requests().len()),
        (Some(130), 0)
    );
    assert_eq!(scene.state(), before);
    scene.place("go-on", b"");
    let ran = scene.run(&[]);
    assert_eq!(
        (ran.code, doubts(&scene)),
        (Some(0), vec!["already-green".to_owned()]),
        "{ran}"
    );
    assert!(
        ran.err.contains("fails, as it should before the change"),
        "{ran}"
    );
    assert!(
        !ran.err.contains("test -d src passes, but"),
        "it ran before the interruption: {ran}"
    );
    let journal = scene.recorded("events.jsonl");
    assert_eq!(
        journal.matches("\"log\":\"preflight/base_").count(),
        4,
        "a request and an answer each: {journal}"
    );
}

#[test]
fn what_cannot_be_proved_is_told_before_and_after() {
    let kind = Kind {
        verify: Some("#!/no/such/fish\n"),
        ..Kind::accepted("", &["true", "test -d src"])
    };
    let scene = kind.scene();
    let file = scene.beside("order.json");
    let check = Ran::of(&mut scene.program(&["order", "check", file.to_str().unwrap()]));
    assert_eq!(check.code, Some(0), "{check}");
    insta::assert_snapshot!(check.err, @"
    warning: scripts/verify.sh is run by bash, but its first line names another program: there is no program /no/such/fish
    warning: `bash scripts/verify.sh` cannot fail, so that it passes proves nothing
    warning: `true` cannot fail, so that it passes proves nothing
    ");
    let told: Vec<String> = scene
        .run(&[])
        .err
        .lines()
        .filter(|line| line.starts_with("warning: "))
        .map(str::to_owned)
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    warning: the price of openai/test is not known, so its cost cannot be shown or limited; put it into [[price]] of your configuration
    warning: scripts/verify.sh is run by bash, but its first line names another program: there is no program /no/such/fish
    warning: `bash scripts/verify.sh` cannot fail, so that it passes proves nothing
    warning: `true` cannot fail, so that it passes proves nothing
    warning: `test -d src` passes without the change, so that it passes afterwards proves nothing
    warning: no acceptance command fails without the change, so a PASS does not show that it works
    ");
}

#[test]
fn an_order_that_nobody_has_filled_in_is_named_by_check_and_by_run() {
    let scene = Scene::with(&[]);
    let file = scene.beside("order.json");
    let file = file.to_str().unwrap();
    files::write(
        &scene.beside("order.json"),
        code_commit_loop_order::TEMPLATE.replace("order-1", "mine"),
    );
    let (check, run) = (
        Ran::of(&mut scene.program(&["order", "check", file])),
        scene.run(&[]),
    );
    assert_eq!(
        (check.code, run.code, scene.server.requests().len()),
        (Some(1), Some(3), 0),
        "{check}{run}"
    );
    let problem = "is that of the template; say what is wanted";
    assert!(check.out.contains(&format!("intent {problem}")), "{check}");
    assert!(run.err.contains(&format!("intent: {problem}")), "{run}");
}

#[test]
fn another_strictness_is_another_run() {
    let kind = Kind::green("", "test -d src");
    let scene = kind.scene();
    assert_eq!(scene.run(&["--strict"]).code, Some(3));
    assert_eq!(scene.run(&["--strict"]).code, Some(3));
    let ran = scene.run(&[]);
    assert_eq!(
        (ran.code, scene.server.requests().len()),
        (Some(0), 1),
        "{ran}"
    );
}
