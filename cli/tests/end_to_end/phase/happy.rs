//! A phase that passes.

use crate::scenes::files;
use crate::scenes::phase::{KEY, Scene};
use crate::scenes::program::must_have;

#[test]
fn logs_are_of_the_last_turn_and_the_map_of_the_project_is_made_before_each() {
    let scene = Scene::new(&[
        ("builder-1", "echo one > app"),
        ("verifier-1", "fails 404"),
        ("builder-2", "echo two > app"),
    ]);
    scene.run(&["run"]).exits(0);
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
    must_have(
        &scene.read(".abl/project_map.txt"),
        "\n../specs/phase1.md\n",
    );
    must_have(query("3-builder-query.txt"), "\napp\n");
    assert!(!query("1-builder-query.txt").contains("\napp\n"));
}

#[test]
fn the_cli_has_its_key_and_no_log_holds_it() {
    let scene = Scene::new(&[
        ("verifier-1", "fails 404"),
        (
            "builder-2",
            "env > /dev/null; echo \"$GEMINI_API_KEY\" > seen; say \"$GEMINI_API_KEY\"",
        ),
    ]);
    assert_eq!(scene.run(&["1"]).code, Some(0));
    let logs = scene.files(".abl/logs");
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
fn a_commit_that_says_so_is_no_pass_until_a_person_trusts_it() {
    let scene = Scene::new(&[("verifier-1", "fails 404"), ("verifier-2", "fails 500")]);
    scene.write(
        ".abl/abl.config.yaml",
        "loop: {max_verifier_iterations: 1}\n",
    );
    assert_eq!(scene.run(&["run"]).code, Some(6));
    scene.commit("src", &["--allow-empty", "-m", "phase1/passed"]);
    let again = scene.run(&["run", "--retry"]).exits(6);
    again.err_has("no run here found that");
    assert_eq!(scene.turns("verifier"), 2);
    scene.run(&["trust", "2"]).exits(3);
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
    scene.add_phase();
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
    let ran = scene.run(&["run"]).exits(0);
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
    must_have(&shown, "<a b><$(id)>");
    must_have(&shown, "no command nope");
    must_have(&shown, "# Phase 1: A page");
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
    files::make_pipe(&fifo);
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
    checked.out_has("phase1.md:3: this is still the template");
    scene.write(
        ".abl/specs/phase1.md",
        "# Phase 1: A page\n\n- GET / → 200\n",
    );
    scene.write(".abl/specs/phase2.md", "Phase 2\n- a → b → c\n");
    let checked = scene.run(&["check"]).exits(1);
    checked
        .out_has("phase2.md:1: the first line")
        .out_has("phase2.md:2: ");
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
