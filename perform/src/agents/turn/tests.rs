use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agent::{Denial, Installed, Permissions};
use logging::{Redactor, RunFolder};
use runner::{Confinement, Env};

use super::*;
use crate::agents::Watched;
use crate::agents::executor::tests::{Deaf, executor, unguarded};
use crate::agents::record::{Silent, outline_of};

/// Says, as Codex does, what its session has used so far: 100 tokens more in each turn.
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
        cli: Installed::at(Kind::Codex, &program).unwrap(),
        cwd: work.clone(),
        confinement: Confinement::off(),
        model: Some("gpt-test".into()),
        env,
        extra_env: Vec::new(),
        key: None,
        home: Some(top.join("home")),
        permissions: Permissions::Skip,
        timeout: None,
        idle_timeout: None,
        watched: Watched { root: work, ..Watched::default() },
        log: None,
    }
}

/// What an executor with this role says to these turns, one after another, the journal in between.
fn turns(top: &Path, role: Role, sessions: &[Session]) -> Vec<Result<Turned, AgentFault>> {
    let (mut watch, mut around, mut observer) = (Deaf, unguarded, Silent);
    let roles = [("builder".to_owned(), role)].into();
    let mut executor = AgentExecutor { roles, ..executor(top, &mut watch, &mut around) };
    let run = RunFolder::create(top, "run", Redactor::default()).unwrap();
    let mut record = Record::begin(run, &mut observer).unwrap();
    let mut turns = Vec::new();
    for (number, session) in (1..).zip(sessions) {
        let request = Request { number, role: "builder", prompt: "go", system: None, session };
        let fact = executor.turn(&request, &mut record);
        turns.push(fact.map(|fact| {
            record.note(&fact).unwrap();
            let AgentFact::Turned(turned) = fact else { panic!("{fact:?}") };
            *turned
        }));
    }
    turns
}

/// The tokens in and out of each of these turns.
fn used(sessions: &[Session]) -> Vec<(Option<u64>, Option<u64>)> {
    let folder = tempfile::tempdir().unwrap();
    let turns = turns(folder.path(), role(folder.path()), sessions);
    let usage = turns.into_iter().flat_map(|turned| turned.unwrap().usage);
    usage.map(|usage| (usage.input_tokens, usage.output_tokens)).collect()
}

#[test]
fn each_turn_of_a_session_of_codex_counts_what_it_used_itself() {
    let goes_on = || Session::Resume("t-1".into());
    assert_eq!(used(&[Session::None, goes_on(), goes_on()]), [(Some(100), Some(10)); 3]);
}

#[test]
fn what_another_session_had_used_is_not_taken_off() {
    let sessions = [Session::None, Session::Resume("t-0".into())];
    assert_eq!(used(&sessions), [(Some(100), Some(10)), (Some(200), Some(20))]);
}

#[test]
fn a_journal_that_cannot_be_read_ends_the_turn_before_its_tokens_are_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (role, journal) = (role(folder.path()), folder.path().join("run").join(crate::JOURNAL));
    fs::write(&role.cli.program, format!("{CODEX}echo junk >> '{}'\n", journal.display())).unwrap();
    let turns = turns(folder.path(), role, &[Session::None, Session::Resume("t-1".into())]);
    assert!(matches!(turns.as_slice(), [Ok(_), Err(AgentFault::Record(_))]), "{turns:?}");
}

#[test]
fn the_output_of_the_last_turn_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (log, theirs) = (folder.path().join("builder.log"), folder.path().join("theirs"));
    fs::write(&theirs, "theirs").unwrap();
    std::os::unix::fs::symlink(&theirs, &log).unwrap();
    let role = Role { log: Some(log.clone()), ..role(folder.path()) };
    turns(folder.path(), role, &[Session::None]).pop().unwrap().unwrap();
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
    // A folder in the place of the log: the turn ends with an error.
    role.log = Some(folder.path().join("home"));
    turns(folder.path(), role, &[Session::None]).pop().unwrap().unwrap_err();
    assert_eq!(fs::read_to_string(&not_its_own).unwrap(), "theirs");
}

#[test]
fn a_key_in_anything_that_an_agent_says_is_struck_out_before_the_loop_hears_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), "run", Redactor::new(["secret-key-77"])).unwrap();
    let mut observer = Silent;
    let mut record = Record::begin(run.clone(), &mut observer).unwrap();
    let key = || "a secret-key-77".to_owned();
    let outcome = agent::Outcome {
        end: End::Refused { message: key() },
        text: key(),
        usage: vec![ModelUsage { model: key(), ..ModelUsage::default() }],
        cost_usd: None,
        session: Some(key()),
        denials: vec![Denial { tool: key(), argument: Some(key()) }],
        elapsed_ms: 1,
        stderr: key(),
    };
    let changes = Changes { allowed: vec![key()], gone: vec![key()], put_back: vec![key()] };
    let markers = vec![Marked { name: "NOTE".to_owned(), content: key() }];
    let request = Request { number: 1, role: "builder", prompt: "go", system: None, session: &Session::None };
    let fact = turned(&request, outcome, markers, changes, &record).unwrap();
    assert!(!format!("{fact:?}").contains("secret-key-77"), "{fact:?}");
    record.note(&fact).unwrap();
    let AgentFact::Turned(heard) = fact else { panic!("{fact:?}") };
    let Some(AgentFact::Turned(kept)) = outline_of(&run).unwrap().pop() else { panic!() };
    assert_eq!((heard.session, heard.denials, heard.changed), (kept.session, kept.denials, kept.changed));
}
