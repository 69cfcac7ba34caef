//! S3: a builder and a verifier, five verifications at most.

use std::fs;

use regex::Regex;

use super::{NO_CHANGE, PROSE, TRAVERSAL, Table, judge, runs_of, text};
use crate::scenes::files;
use crate::scenes::phase::Scene;

const BUILDS: &str = "abl-cmd lint > lint.txt; echo $n > app";
const FAILS: &str = "abl-cmd serve > serve.txt; fails 404";
const PASSES: &str = "abl-cmd serve > serve.txt";
const PROJECT: &str = "A server of one page.\n";
const SPECS: [&str; 2] = [
    "# Phase 1: A page\n\n- GET / → 200\n",
    "# Phase 2: More\n\n- GET /more → 200\n",
];
const FAILURES: &str = "SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 404\n";

struct Row {
    name: &'static str,
    builder: String,
    /// The last one for ever.
    verifier: Vec<String>,
    iterations: Option<u32>,
    /// Turns of the builder and of the verifier, runs of the command of each.
    counts: [usize; 4],
    /// Empty if the run ends in the middle.
    status: &'static str,
}

fn row(name: &'static str, verifier: &[&str], counts: [usize; 4], status: &'static str) -> Row {
    Row {
        name,
        builder: BUILDS.to_owned(),
        verifier: verifier.iter().map(|&turn| turn.to_owned()).collect(),
        iterations: None,
        counts,
        status,
    }
}

/// Two agents that only say this. Nothing has failed, so the phase has passed.
fn says(name: &'static str, text: &str) -> Row {
    let turn = format!("answer '{}'", text.trim_end().replace('\n', "\\\\n"));
    Row {
        builder: turn.clone(),
        ..row(name, &[&turn], [1, 1, 0, 0], "completed")
    }
}

fn rows() -> Vec<Row> {
    vec![
        row("fails for ever", &[FAILS], [5, 5, 5, 5], "stuck"),
        Row {
            iterations: Some(2),
            ..row(
                "fails for ever, two iterations",
                &[FAILS],
                [2, 2, 2, 2],
                "stuck",
            )
        },
        row(
            "fails without INPUT for ever",
            &["echo SPEC: GET / > failed_specs.md"],
            [5, 5, 5, 0],
            "stuck",
        ),
        row("passes at once", &[PASSES], [1, 1, 1, 1], "completed"),
        row(
            "an empty list",
            &[": > failed_specs.md"],
            [1, 1, 1, 0],
            "completed",
        ),
        row(
            "fails twice, then passes",
            &[FAILS, FAILS, PASSES],
            [3, 3, 3, 3],
            "completed",
        ),
        row(
            "passes in the fifth",
            &[FAILS, FAILS, FAILS, FAILS, PASSES],
            [5, 5, 5, 5],
            "completed",
        ),
        row(
            "crashes",
            &["abl-cmd serve > serve.txt; exit 3"],
            [1, 1, 1, 1],
            "",
        ),
        row("ends without an answer", &["answer ''"], [1, 1, 1, 0], ""),
        says("prose", PROSE),
        says("a traversal", TRAVERSAL),
        says("$$$", NO_CHANGE),
    ]
}

#[test]
fn s3_counts_what_its_seed_counts() {
    judge("S3", &rows(), check);
}

fn staged(row: &Row) -> Scene {
    let scene = Scene::new(&[]);
    for n in 1..=10 {
        let verifier = row.verifier.get(n - 1).or(row.verifier.last()).unwrap();
        for (role, turn) in [("builder", &row.builder), ("verifier", verifier)] {
            fs::write(scene.at(&format!("bin/turns/{role}-{n}.sh")), turn).unwrap();
        }
    }
    let [lint, serve] = ["lint", "serve"].map(|name| scene.at(name).display().to_string());
    let limit = row
        .iterations
        .map(|most| format!("loop: {{max_verifier_iterations: {most}}}\n"))
        .unwrap_or_default();
    let config = format!(
        "models: {{builder: gemini-b, verifier: gemini-v}}\n\
         builder_commands:\n  lint: {{command: 'echo lint >> {lint}', description: the linter}}\n\
         verifier_commands:\n  serve: {{command: 'echo serve >> {serve}', description: the server}}\n{limit}"
    );
    scene.write(".abl/abl.config.yaml", &config);
    scene.write(".abl/project.md", PROJECT);
    for (n, spec) in (1..).zip(SPECS) {
        scene.write(&format!(".abl/specs/phase{n}.md"), spec);
    }
    scene
}

fn check(table: &mut Table, row: &Row) {
    let scene = staged(row);
    let ran = scene.run(&["1"]);
    let beside = scene.at("");
    let turns = ["builder", "verifier"].map(|role| scene.turns(role) as usize);
    let commands = ["lint", "serve"].map(|name| runs_of(name, &beside));
    let counted = [turns, commands].concat();
    let has_passed = row.status == "completed";
    let what = "builder verifier lint serve";
    let exit = match row.status {
        "completed" => 0,
        "stuck" => 6,
        _ => 4,
    };
    table.row(row.name, &ran, exit, what, &row.counts, &counted);
    if row.status.is_empty() {
        let found = scene.commits("src").join(" ");
        return table.same("a crash is no pass", "phase1/build/step-1", &found);
    }
    let iterations = row.counts[1];
    let steps = |step: &str, most: usize| -> String {
        (1..=most)
            .map(|n| format!("phase1/{step}/step-{n} "))
            .collect()
    };
    let last = if has_passed { "phase1/passed " } else { "" };
    let src = steps("build", iterations) + last;
    let tests = steps("verify", iterations - usize::from(has_passed));
    for (wanted, folder) in [(src, "src"), (tests, ".abl/tests")] {
        let found: String = scene
            .commits(folder)
            .iter()
            .map(|subject| format!("{subject} "))
            .collect();
        table.same(&format!("the commits of {folder}"), &wanted, &found);
    }
    let list = scene.project(".abl/tests/failed_specs.md");
    table.holds(
        "failed_specs.md is there after a failure",
        list.exists() != has_passed,
    );
    let (status, iteration) = scene.state();
    let wanted = format!("{} {iterations}", row.status);
    table.same("state.json", &wanted, &format!("{status} {iteration}"));
    tokens(table, row, &scene);
    logs(table, row, &scene);
}

fn tokens(table: &mut Table, row: &Row, scene: &Scene) {
    let mut wanted =
        "timestamp,phase,step,role,model,input,candidates,cached,total,session_id\n".to_owned();
    for n in 1..=row.counts[1] {
        for role in ["builder", "verifier"] {
            wanted += &format!("T,1,{n},{role},gemini-test,10,3,2,15,s-{role}-{n}\n");
        }
    }
    let time = Regex::new(r"(?m)^20[^,]+").unwrap();
    let rows = text(&scene.project(".abl/logs/tokens.csv"));
    table.same("tokens.csv", &wanted, &time.replace_all(&rows, "T"));
}

fn logs(table: &mut Table, row: &Row, scene: &Scene) {
    let folders = files::entries(scene.project(".abl/logs"));
    let folder = folders.into_iter().find(|path| path.is_dir()).unwrap();
    let turns = (1..=row.counts[1]).flat_map(|n| [("builder", n), ("verifier", n)]);
    let mut last = String::new();
    for (at, (role, n)) in (1..).zip(turns) {
        last = text(&folder.join(format!("{at}-{role}-query.txt")));
        let wanted = prompt(scene, row, role, n, files_shown(&last));
        table.same(&format!("prompt {at}"), &wanted, &last);
    }
    let map = scene.read(".abl/project_map.txt");
    table.same("project_map.txt", files_shown(&last), &map);
    // The README of the seed has `json`: streamed, the same statistics come with the same last object.
    let words = format!("-m\ngemini-v\n-y\n--output-format\nstream-json\n-p\n{last}\n");
    let found = text(&scene.project(".code-commit/agents/verifier/args"));
    table.same("how the CLI is started", &words, &found);
    for role in ["builder", "verifier"] {
        let log = text(&scene.project(&format!(".abl/logs/{role}.log")));
        let session = format!("\"session_id\":\"s-{role}-{}\"", row.counts[1]);
        table.holds("a log is that of the last run", log.contains(&session));
    }
}

/// What of a prompt lists the files of the project.
fn files_shown(prompt: &str) -> &str {
    let parts = prompt.split_once("# Files that you can see\n\n");
    parts.map_or("", |(_, map)| map)
}

/// In the order of the seed's README; the map of the project, which the seed makes before every call, comes last.
fn prompt(scene: &Scene, row: &Row, role: &str, iteration: usize, map: &str) -> String {
    let most = row.iterations.unwrap_or(5);
    let last = iteration
        .checked_sub(2)
        .map(|n| row.verifier.get(n).or(row.verifier.last()));
    let failures = last.flatten().map(|turn| {
        if turn == FAILS {
            FAILURES
        } else {
            "SPEC: GET /\n"
        }
    });
    let own = scene
        .read(&format!("prompts/{role}.md"))
        .replace("<<PHASE>>", "1")
        .replace("<<ITERATION>>", &iteration.to_string());
    let (folder, command) = match role {
        "builder" => ("src", "- `abl-cmd lint`: the linter\n"),
        _ => (".abl/tests", "- `abl-cmd serve`: the server\n"),
    };
    let workspace = scene.project(folder).display().to_string();
    let failed = match (role, failures) {
        ("builder", None) => {
            "# Failed contracts\n\nThis is a first build: nothing has failed.\n\n".to_owned()
        }
        ("builder", Some(failures)) => format!(
            "# Failed contracts\n\nThe last verification failed. Mend these first:\n\n{failures}\n"
        ),
        (_, None) => String::new(),
        (_, Some(failures)) => format!(
            "# What failed last time\n\nThe file was removed; write a new one if something fails now.\n\n{failures}\n"
        ),
    };
    format!(
        "{own}\n# Project\n\n{PROJECT}\n# Session state\n\n- Phase: 1 (A page)\n- Iteration: {iteration} of {most}\n- Workspace: {workspace}\n\n\
         {failed}# Phases\n\n- Phase 1: A page (current)\n- Phase 2: More (pending)\n\n# Spec of phase 1\n\n{}\n\
         # Commands\n\n- `abl-cmd get-spec N`: prints the spec of phase N\n{command}\n# Files that you can see\n\n{map}",
        SPECS[0]
    )
}
