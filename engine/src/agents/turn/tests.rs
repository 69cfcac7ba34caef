use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agent::{Event, Installed, Permissions};
use logging::{Redactor, RunFolder};
use runner::{Cancel, Confinement, Env};

use super::*;
use crate::Silent;
use crate::agents::{AgentWatch, Kept, Watched};

/// Says, as Codex does, what its session has used so far: 100 tokens more in each turn.
const CODEX: &str = r#"#!/bin/sh
n=$(($(cat "$HOME/count" 2>/dev/null || echo 0) + 1))
echo $n > "$HOME/count"
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":'$((n * 100))',"output_tokens":'$((n * 10))'}}'
"#;

struct Deaf;

impl AgentWatch for Deaf {
    fn begins(&mut self, _role: &str, _number: u32) {}
    fn sees(&mut self, _role: &str, _event: &Event) {}
}

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

/// The tokens in and out of each of these turns, one after another, the journal in between.
fn used(sessions: &[Session]) -> Vec<(Option<u64>, Option<u64>)> {
    let folder = tempfile::tempdir().unwrap();
    let (mut watch, mut observer) = (Deaf, Silent);
    let mut around = |_: &str| -> std::io::Result<crate::agents::Guarded> { Ok(Box::new(())) };
    let mut shop = AgentShop {
        roles: [("builder".to_owned(), role(folder.path()))].into(),
        places: [].into(),
        repositories: [].into(),
        shell_cwd: folder.path().to_owned(),
        shell_env: Env::default(),
        shell_confinement: Confinement::off(),
        shell_timeout: None,
        watch: &mut watch,
        around: &mut around,
        cancel: Cancel::new().unwrap(),
        kept: Kept::default(),
    };
    let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
    let mut record = Record::begin(run, &mut observer).unwrap();
    let mut used = Vec::new();
    for (number, session) in (1..).zip(sessions) {
        let request = Request { number, role: "builder", prompt: "go", system: None, session };
        let fact = shop.turn(&request, &mut record).unwrap();
        record.note(&fact).unwrap();
        let AgentFact::Turned(turned) = fact else { panic!("{fact:?}") };
        used.extend(turned.usage.iter().map(|usage| (usage.input_tokens, usage.output_tokens)));
    }
    used
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
