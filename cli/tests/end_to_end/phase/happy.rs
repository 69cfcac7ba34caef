//! A phase that passes.

use crate::scenes::phase::{KEY, Scene};

#[test]
fn a_phase_that_fails_once_passes_in_its_second_iteration() {
    let scene = Scene::new(&[
        ("builder-1", "echo one > app"),
        ("verifier-1", "fails 404"),
        ("builder-2", "echo two > app"),
        ("verifier-2", ": > failed_specs.md"),
    ]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        scene.commits("src"),
        [
            "phase1/build/step-1",
            "phase1/build/step-2",
            "phase1/passed"
        ]
    );
    assert_eq!(scene.commits(".abl/tests"), ["phase1/verify/step-1"]);
    assert_eq!(scene.state(), ("completed".to_owned(), 2));
    assert!(
        !scene.project(".abl/tests/failed_specs.md").exists(),
        "the empty one goes too"
    );
    let rows = scene.read(".abl/logs/tokens.csv");
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(
        rows[0].join(","),
        "timestamp,phase,step,role,model,input,candidates,cached,total,session_id"
    );
    let turns: Vec<String> = rows[1..].iter().map(|row| row[1..].join(",")).collect();
    assert_eq!(
        turns,
        [
            "1,1,builder,gemini-test,10,3,2,15,s-builder-1",
            "1,1,verifier,gemini-test,10,3,2,15,s-verifier-1",
            "1,2,builder,gemini-test,10,3,2,15,s-builder-2",
            "1,2,verifier,gemini-test,10,3,2,15,s-verifier-2",
        ]
    );
    for role in ["builder", "verifier"] {
        let log = scene.read(&format!(".abl/logs/{role}.log"));
        let printed = [
            format!(r#"{{"type":"init","session_id":"s-{role}-2","model":"gemini-test"}}"#),
            r#"{"type":"message","role":"assistant","content":"Done.","delta":true}"#.to_owned(),
        ];
        assert!(
            log.starts_with(&(printed.join("\n") + "\n{\"type\":\"result\",")),
            "{log}"
        );
        assert_eq!(log.lines().count(), 3, "{log}");
    }
    let logs = scene.files(".abl/logs");
    let query = |file: &str| {
        &logs
            .iter()
            .find(|(path, _)| path.ends_with(file))
            .unwrap()
            .1
    };
    let map = scene.read(".abl/project_map.txt");
    assert!(
        map.contains("\n../specs/phase1.md\n") && query("4-verifier-query.txt").ends_with(&map),
        "{map}"
    );
    let (first, second) = (query("1-builder-query.txt"), query("3-builder-query.txt"));
    assert!(
        second.contains("\napp\n") && !first.contains("\napp\n"),
        "rewritten before each turn: {second}"
    );
}

#[test]
fn the_builder_is_told_what_failed_and_no_file_holds_the_key() {
    let scene = Scene::new(&[
        ("verifier-1", "fails 404"),
        (
            "builder-2",
            "env > /dev/null; echo \"$GEMINI_API_KEY\" > seen; say \"$GEMINI_API_KEY\"",
        ),
    ]);
    assert_eq!(scene.run(&["1"]).code, Some(0));
    let logs = scene.files(".abl/logs");
    let prompt = &logs
        .iter()
        .find(|(path, _)| path.ends_with("3-builder-query.txt"))
        .unwrap()
        .1;
    assert!(prompt.contains("INPUT: GET /\nOBSERVED: 404"), "{prompt}");
    assert!(
        prompt.contains("phase 1, iteration 2") && !prompt.contains("<<"),
        "{prompt}"
    );
    assert_eq!(
        scene.read("src/seen").trim(),
        KEY,
        "the CLI itself needs its key"
    );
    for (path, text) in logs {
        assert!(!text.contains(KEY), "{}", path.display());
    }
}

#[test]
fn the_verifier_finds_the_failures_of_the_round_before_in_its_history_alone() {
    let look = "ls > listed; git show HEAD:failed_specs.md > shown";
    let scene = Scene::new(&[("verifier-1", "fails 404"), ("verifier-2", look)]);
    assert_eq!(scene.run(&["1"]).code, Some(0));
    assert!(!scene.read(".abl/tests/listed").contains("failed_specs.md"));
    assert!(scene.read(".abl/tests/shown").contains("OBSERVED: 404"));
}

#[test]
fn a_phase_that_has_passed_is_not_done_again() {
    let scene = Scene::new(&[]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    let again = scene.run(&["1"]);
    assert_eq!(
        (again.code, again.out.trim()),
        (Some(0), "Phase 1 has passed.")
    );
    assert_eq!(scene.run(&["run"]).out.trim(), "Every phase has passed.");
    assert_eq!(scene.turns("builder"), 1);
}

#[test]
fn a_commit_that_says_so_is_no_pass_until_a_person_trusts_it() {
    let scene = Scene::new(&[("verifier-1", "fails 404"), ("verifier-2", "fails 500")]);
    scene.write(
        ".abl/abl.config.yaml",
        "loop: {max_verifier_iterations: 1}\n",
    );
    assert_eq!(scene.run(&["run"]).code, Some(6));
    let forge = [
        "-c",
        "user.name=B",
        "-c",
        "user.email=b@example.invalid",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "phase1/passed",
    ];
    let mut git = std::process::Command::new("git");
    assert!(
        git.args(forge)
            .current_dir(scene.project("src"))
            .status()
            .unwrap()
            .success()
    );
    let again = scene.run(&["run", "--retry"]);
    assert_eq!(again.code, Some(6), "{again:?}");
    assert!(
        again.err.contains("no run here found that"),
        "{}",
        again.err
    );
    assert_eq!(scene.turns("verifier"), 2);
    let refused = scene.run(&["trust", "2"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let trusted = scene.run(&["trust", "1"]);
    assert_eq!(
        (trusted.code, trusted.out.trim()),
        (Some(0), "Phase 1 counts as passed for the current specs.")
    );
    assert_eq!(scene.run(&["run"]).out.trim(), "Every phase has passed.");
    assert_eq!(scene.run(&["reopen", "1"]).code, Some(0));
    assert_eq!(
        scene.run(&["1"]).code,
        Some(0),
        "the stand-in passes the third time"
    );
    assert_eq!(scene.turns("verifier"), 3);
}

#[test]
fn run_goes_on_with_the_next_phase_and_the_verifier_gets_all_specs() {
    let scene = Scene::new(&[]);
    scene.write(
        ".abl/specs/phase2.md",
        "# Phase 2: More\n\n- GET /more → 200\n",
    );
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(scene.commits("src").last().unwrap(), "phase2/passed");
    let logs = scene.files(".abl/logs");
    let prompts: Vec<&String> = logs
        .iter()
        .filter(|(path, _)| path.ends_with("2-verifier-query.txt"))
        .map(|(_, text)| text)
        .collect();
    assert!(
        prompts
            .iter()
            .any(|text| text.contains("GET / → 200") && text.contains("GET /more → 200"))
    );
    let costs = scene.code_commit(&["costs"], &[]);
    let row = costs
        .out
        .lines()
        .find(|line| line.starts_with("verifier "))
        .unwrap_or_default();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>().join(" "),
        "verifier ? 2 20 10 4 30 ?",
        "{}",
        costs.out
    );
}

#[test]
fn a_command_of_the_configuration_runs_with_its_arguments_as_they_are_and_ends_with_the_turn() {
    let scene = Scene::new(&[(
        "builder-1",
        "abl-cmd show 'a b' '$(id)' > shown; abl-cmd nope >> shown; abl-cmd get-spec 1 >> shown; abl-cmd linger",
    )]);
    scene.write(
        ".abl/abl.config.yaml",
        "builder_commands:\n  show: {command: \"pwd; printf '<%s>'\", description: shows}\n  linger: {command: 'sleep 4242 &'}\n",
    );
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        warning.contains("run with all your rights, and what they start, too: linger, show"),
        "{}",
        ran.err
    );
    let shown = scene.read("src/shown");
    assert!(
        shown.starts_with(scene.at("project").to_str().unwrap()),
        "{shown}"
    );
    assert!(
        shown.contains("<a b><$(id)>")
            && shown.contains("no command nope")
            && shown.contains("# Phase 1: A page"),
        "{shown}"
    );
    assert!(
        !is_running("sleep\u{0}4242"),
        "what a command left running ends with the turn"
    );
}

#[test]
fn commands_that_wait_for_their_turn_when_the_roles_turn_ends_are_never_begun() {
    let queue = "i=0; while [ $i -lt 40 ]; do abl-cmd block >/dev/null 2>&1 & i=$((i+1)); done; read -r line < ../begun";
    let scene = Scene::new(&[("builder-1", queue)]);
    let fifo = scene.project("begun");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    // What is begun says so; the first makes the turn end.
    scene.write(
        ".abl/abl.config.yaml",
        "builder_commands:\n  block: {command: \"echo >> began; echo > begun; exec sleep 4243\"}\n",
    );
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert!(
        !is_running("sleep\u{0}4243"),
        "what waited was begun when the turn was over"
    );
    assert_eq!(scene.read("began"), "\n", "one was begun");
    scene.assert_no_process("after the run");
}

/// Whether a process has this command line.
pub(crate) fn is_running(line: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    let line_of = |path: std::path::PathBuf| {
        std::fs::read_to_string(path.join("cmdline")).unwrap_or_default()
    };
    processes
        .flatten()
        .any(|entry| line_of(entry.path()).contains(line))
}

#[test]
fn init_overwrites_nothing_and_check_names_the_faults_of_a_spec() {
    let scene = Scene::new(&[]);
    scene.write("prompts/builder.md", "mine");
    assert!(scene.run(&["init"]).out.contains("kept prompts/builder.md"));
    assert_eq!(scene.read("prompts/builder.md"), "mine");
    scene.git("", &["init", "-q"]);
    assert_eq!(scene.git("", &["check-ignore", ".env"]), [".env"]);
    assert_eq!(scene.read(".gitignore"), "/.env\n", "added once");
    assert_eq!(scene.run(&["check"]).code, Some(0));
    let template = include_str!("../../../src/commands/phase/init/phase1.md");
    scene.write(".abl/specs/phase1.md", template);
    let checked = scene.run(&["check"]);
    assert_eq!(
        checked.code,
        Some(1),
        "nobody has written what the phase is for: {}",
        checked.out
    );
    assert!(
        checked
            .out
            .contains("phase1.md:3: this is still the template"),
        "{}",
        checked.out
    );
    scene.write(
        ".abl/specs/phase1.md",
        "# Phase 1: A page\n\n- GET / → 200\n",
    );
    scene.write(".abl/specs/phase2.md", "Phase 2\n- a → b → c\n");
    let checked = scene.run(&["check"]);
    assert_eq!(checked.code, Some(1));
    assert!(
        checked.out.contains("phase2.md:1: the first line")
            && checked.out.contains("phase2.md:2: "),
        "{}",
        checked.out
    );
    assert_eq!(
        scene.run(&["2"]).code,
        Some(3),
        "a spec without its title line is refused"
    );
}

#[test]
fn a_project_of_the_earlier_harness_goes_on_from_its_state_file() {
    let scene = Scene::new(&[]);
    scene.write(
        ".abl/state.json",
        r#"{"phases_completed":[],"phase_titles":{},"current":{"phase":1,"verifier_iteration":3,"status":"verifying","builder_done":true,"verifier_done":false}}"#,
    );
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (0, 1));
    assert_eq!(scene.state(), ("completed".to_owned(), 3));
}
