use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use code_commit_agent::{Installed, Permissions};
use code_commit_engine::{Durability, Live as _, Named, Recorded};
use code_commit_logging::{Redactor, RunFolder};
use code_commit_runner::{Confinement, Env};
use serde::Serialize;

use super::*;
use crate::agents::world::tests::world;
use crate::agents::{Repository, Watched, Worker};

/// A project with one role.
#[derive(Debug, Clone)]
struct One;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Builder;

impl Named for Builder {
    fn name(self) -> &'static str {
        "builder"
    }
}

impl AgentLoop for One {
    type Role = Builder;
    type Place = Builder;
    type Repository = Builder;
}

impl Cast<One> for Role {
    fn role(&self, _: Builder) -> &Role {
        self
    }

    fn folder(&self, _: Builder) -> std::path::PathBuf {
        self.cwd.clone()
    }

    fn repository(&self, _: Builder) -> &Repository {
        unreachable!("no request names a repository")
    }

    fn counted(&self, _: Builder) -> crate::Counted {
        crate::Counted::All
    }
}

/// A turn that goes on in this session, if one is named.
fn ask(goes_on: Option<&str>) -> Turn<One> {
    Turn {
        goes_on: goes_on.map(str::to_owned),
        ..Turn::new(Builder, "go".into(), None)
    }
}

/// Reports, as Codex does, the total usage of its session: 100 tokens more in each turn.
const CODEX: &str = r#"#!/bin/sh
n=$(($(cat "$HOME/count" 2>/dev/null || echo 0) + 1))
echo $n > "$HOME/count"
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":'$((n * 100))',"output_tokens":'$((n * 10))'}}'
"#;

fn role(top: &Path) -> Role {
    let program = top.join("codex");
    fs::write(&program, CODEX).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let work = top.join("work");
    fs::create_dir(&work).unwrap();
    let mut env = Env::default();
    env.set("PATH", "/usr/bin:/bin");
    Role {
        worker: Worker {
            cli: Installed::at(Kind::Codex, &program).unwrap(),
            model: Some("gpt-test".into()),
            extra_env: Vec::new(),
            key: None,
        },
        others: Vec::new(),
        cwd: work.clone(),
        confinement: Confinement::off(),
        env,
        home: Some(top.join("home")),
        permissions: Permissions::Skip,
        timeout: None,
        idle_timeout: None,
        watched: Watched {
            root: work,
            ..Watched::default()
        },
        log: None,
    }
}

/// The results of these turns of this role, in sequence, with the journal in between.
fn turns(top: &Path, role: Role, sessions: &[Option<&str>]) -> Vec<Result<Turned, AgentFault>> {
    let run = RunFolder::create(top, "run", Redactor::default()).unwrap();
    let mut world = world(top, run, role);
    let mut turns = Vec::new();
    for session in sessions {
        let request = ask(*session);
        turns.push(world.perform(&request).map(|answer| {
            world
                .record
                .answer(&Recorded::of(&request, &answer).unwrap(), Durability::Now)
                .unwrap();
            let TurnAnswer::Turned(turned) = answer else {
                panic!("{answer:?}")
            };
            *turned
        }));
    }
    turns
}

/// Input and output tokens of each of these turns.
fn used(sessions: &[Option<&str>]) -> Vec<(Option<u64>, Option<u64>)> {
    let folder = tempfile::tempdir().unwrap();
    let turns = turns(folder.path(), role(folder.path()), sessions);
    let usage = turns.into_iter().flat_map(|turned| turned.unwrap().usage);
    usage
        .map(|used| (used.usage.input_tokens, used.usage.output_tokens))
        .collect()
}

#[test]
fn each_turn_of_a_session_of_codex_counts_what_it_used_itself() {
    assert_eq!(
        used(&[None, Some("t-1"), Some("t-1")]),
        [(Some(100), Some(10)); 3]
    );
}

#[test]
fn what_another_session_had_used_is_not_taken_off() {
    assert_eq!(
        used(&[None, Some("t-0")]),
        [(Some(100), Some(10)), (Some(200), Some(20))]
    );
}

#[test]
fn a_journal_that_cannot_be_read_ends_the_turn_before_its_tokens_are_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (role, journal) = (
        role(folder.path()),
        folder.path().join("run").join(crate::JOURNAL),
    );
    fs::write(
        &role.worker.cli.program,
        format!("{CODEX}echo junk >> '{}'\n", journal.display()),
    )
    .unwrap();
    let turns = turns(folder.path(), role, &[None, Some("t-1")]);
    assert!(
        matches!(turns.as_slice(), [Ok(_), Err(AgentFault::Record(_))]),
        "{turns:?}"
    );
}

#[test]
fn the_output_of_the_last_turn_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (log, theirs) = (
        folder.path().join("builder.log"),
        folder.path().join("theirs"),
    );
    fs::write(&theirs, "theirs").unwrap();
    std::os::unix::fs::symlink(&theirs, &log).unwrap();
    let role = Role {
        log: Some(log.clone()),
        ..role(folder.path())
    };
    turns(folder.path(), role, &[None]).pop().unwrap().unwrap();
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    assert!(fs::read_to_string(&log).unwrap().contains("thread.started"));
}

#[test]
fn what_a_role_may_not_touch_is_put_back_after_a_turn_that_could_not_be_heard_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut role = role(folder.path());
    let (not_its_own, program) = (role.cwd.join("theirs"), folder.path().join("codex"));
    fs::write(&not_its_own, "theirs").unwrap();
    fs::write(&program, format!("{CODEX}echo mine > theirs\n")).unwrap();
    role.watched.may_touch = Some(Vec::new());
    // A folder in place of the log: the turn ends with an error.
    role.log = Some(folder.path().join("home"));
    turns(folder.path(), role, &[None])
        .pop()
        .unwrap()
        .unwrap_err();
    assert_eq!(fs::read_to_string(&not_its_own).unwrap(), "theirs");
}

#[test]
fn a_key_in_anything_that_an_agent_says_is_struck_out_before_the_loop_hears_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), "run", Redactor::new(["secret-key-77"])).unwrap();
    let cast = role(folder.path());
    let mut world = world(folder.path(), run, cast);
    let key = || "a secret-key-77".to_owned();
    let outcome = code_commit_agent::Outcome {
        end: End::Refused { message: key() },
        text: key(),
        usage: vec![ModelUsage {
            model: key(),
            ..ModelUsage::default()
        }],
        cost_usd: None,
        session: Some(key()),
        denials: vec![code_commit_agent::Denial {
            tool: key(),
            argument: Some(key()),
        }],
        elapsed_ms: 1,
        stderr: key(),
    };
    let changes = Changes {
        allowed: vec![key()],
        gone: vec![key()],
        put_back: vec![key()],
        warnings: Vec::new(),
    };
    let markers = vec![Marked {
        name: "NOTE".to_owned(),
        content: key(),
    }];
    let request = serde_json::to_value(ask(None)).unwrap();
    let (role, session) = (Builder.name(), Session::None);
    let remaining = code_commit_engine::Amount::default();
    let asked = Asked {
        number: 1,
        role,
        prompt: "go",
        system: None,
        session,
        used_before: None,
        choice: 0,
        request,
        remaining,
    };
    let turned = world.turned(&asked, outcome, markers, changes).unwrap();
    assert!(
        !format!("{turned:?}").contains("secret-key-77"),
        "{turned:?}"
    );
}

#[test]
fn a_turn_that_was_cut_off_with_the_harness_lasted_until_its_last_event() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
    let cast = role(folder.path());
    let mut world = world(folder.path(), run, cast);
    world.limits.max_time_ms = Some(7000);
    world.perform(&ask(None)).unwrap();
    // The answer of the turn was not recorded.
    let at = |what: &str| folder.path().join("run").join(file(1, "builder", what));
    let begun = fs::metadata(at("query.txt")).unwrap().modified().unwrap();
    let events = fs::File::options()
        .append(true)
        .open(at("output.jsonl"))
        .unwrap();
    events
        .set_modified(begun + std::time::Duration::from_secs(7))
        .unwrap();
    world.used = crate::AgentUsage::default();
    let past = Past::read(&folder.path().join("run")).unwrap();
    let (_, answer) = world.cut_off::<One>(&past, |_| Some(Builder)).unwrap();
    let TurnAnswer::Turned(turned) = serde_json::from_value(answer.unwrap().answer).unwrap() else {
        panic!()
    };
    assert_eq!(turned.elapsed_ms, 7000);
    assert_eq!(world.used.passed(&world.limits).unwrap().code, "limit-time");
}

#[test]
fn what_a_loop_does_next_depends_on_how_a_turn_ended() {
    use TurnAdvice::{Renew, Repeat, Stop, Use, WaitUntil};
    let quota = |resets_unix| End::Service {
        code: code_commit_llm::ErrorCode::DailyQuota,
        message: String::new(),
        resets_unix,
    };
    let ends = [End::Ok, End::LostSession, quota(Some(7)), quota(None)];
    let next = |is_cut_off| ends.each_ref().map(|end| turn_end(end, is_cut_off).then);
    assert_eq!(next(true), [Use, Repeat, Repeat, Repeat]);
    assert_eq!(next(false), [Use, Renew, WaitUntil(7), Stop]);
}

#[test]
fn a_folder_that_does_not_exist_has_no_identity() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
    let cast = role(folder.path());
    let work = cast.cwd.clone();
    let mut world = world(folder.path(), run, cast);
    let place = Builder;
    let identify = code_commit_engine::Identify::<One> { place };
    assert!(world.perform(&identify).unwrap().sha256.is_some());
    fs::remove_dir(work).unwrap();
    assert_eq!(world.perform(&identify).unwrap().sha256, None);
}
