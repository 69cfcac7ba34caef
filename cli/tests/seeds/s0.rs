//! S0: a transcript that grows, eight rounds at most.

use super::{
    BUILD, CODEBASE, HALF, Logs, NOTHING, OTHER_HALF, QUERY, Row, Table, WHOLE, WITHOUT_NEW, alike,
    count, judge, needs, prompts, row, scene, without_ours,
};
use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::Ran;

const SYSTEM: &str = "You answer in fences.\n";

/// Its own list: `.git`, `build.sh`, outside; besides, its inputs, its key and its logs.
const FORBIDDEN: &[&str] = &[
    "^^^.git/hooks/post-commit\nx\n^^^end\n",
    "^^^build.sh\nexit 0\n^^^end\n",
    "^^^sub/../../outside.txt\nx\n^^^end\n",
    "^^^query.txt\nx\n^^^end\n",
    "^^^codeRollup.txt\nx\n^^^end\n",
    "^^^gemini-system-prompt.txt\nx\n^^^end\n",
    "^^^gemini-key.txt\nx\n^^^end\n",
    "^^^logs/x.txt\nx\n^^^end\n",
];
/// What the second seed protects, and this one does not.
const ALLOWED: &str = "^^^Cargo.lock\nlock\n^^^end\n^^^.gitignore\n/logs\n/*-key.txt\n/agent-config\n/products/\n^^^end\n\
    ^^^products/made.txt\nmade\n^^^end\n^^^target/made.txt\nmade\n^^^end\n^^^codeRollup.sh\ntrue\n^^^end\n\
    ^^^LLMInstructions.md\nNone.\n^^^end\n^^^UserSpecification.md\nNone.\n^^^end\n^^^work.txt\nwhole\n^^^end\n";

fn rows() -> Vec<Row> {
    let own = [
        row(
            "what may not be written, one by one",
            FORBIDDEN,
            BUILD,
            [8, 0, 1],
        ),
        row(
            "what only the second seed protects",
            &[ALLOWED],
            BUILD,
            [1, 1, 0],
        ),
        row(
            "half, nothing, half, deleted, right",
            &[HALF, NOTHING, OTHER_HALF, WITHOUT_NEW, WHOLE],
            BUILD,
            [5, 4, 0],
        ),
        row(
            "right in the eighth round",
            &[HALF, HALF, HALF, HALF, HALF, HALF, HALF, WHOLE],
            BUILD,
            [8, 8, 0],
        ),
    ];
    alike(8).into_iter().chain(own).collect()
}

fn implement(scene: &Scene) -> Ran {
    let origin = scene.server.origin();
    scene.run(&["implement", "--base-url", origin, "--sandbox", "off"])
}

/// Its inputs lie at the root.
fn with_inputs(row: &Row) -> Scene {
    let inputs = [
        ("query.txt", QUERY),
        ("codeRollup.txt", CODEBASE),
        ("gemini-system-prompt.txt", SYSTEM),
        ("gemini-key.txt", KEY),
    ];
    scene(row, &inputs)
}

#[test]
fn s0_counts_what_its_seed_counts() {
    judge("S0", &rows(), check);
}

fn check(table: &mut Table, row: &Row) {
    let scene = with_inputs(row);
    let ran = implement(&scene);
    let folders = files::entries(scene.at("logs"));
    let logs = Logs {
        folder: folders.into_iter().find(|path| path.is_dir()).unwrap(),
        kinds: [
            "query-N.txt",
            "query-N-response.json",
            "query-N-response.txt",
            "query-N-build.txt",
        ],
    };
    count(table, row, &scene, &ran, &logs);
    let first = scene.server.requests()[0].clone();
    let is_seeds = first.path.contains("/gemini-2.5-pro:") && !first.path.contains(KEY);
    let has_key = first.header("x-goog-api-key") == Some(KEY);
    table.holds(
        "Gemini 2.5 Pro is asked, with the key in a header",
        is_seeds && has_key,
    );
    let mut transcript = [SYSTEM, QUERY, CODEBASE].concat();
    let mut shown = String::new();
    for (n, sent) in (1..).zip(prompts(&scene.server)) {
        let seeds = without_ours(table, &sent);
        table.same(&format!("prompt {n}"), &transcript, &seeds);
        let reply = row.reply(n);
        transcript += match n {
            1 => {
                "The above query was provided, and you provided the following data in your response\n"
            }
            _ => "You then provided the following data in your subsequent response\n",
        };
        transcript += &between(reply, "%%%start", "%%%end");
        transcript += &suggested_files(reply);
        // From its third part on the seed's template has this sentence behind the output: that is straightened.
        transcript +=
            "When the file repalcements were made, the build provided the following output:\n";
        transcript += &logs.text(3, n);
        shown += &between(reply, "&&&start", "&&&end");
    }
    let kept = scene.project.read("llm-user-output.txt");
    table.same("llm-user-output.txt", &shown, &kept.unwrap_or_default());
    table.same(
        "&&& is printed",
        &shown,
        &"for you\n".repeat(ran.out.matches("for you\n").count()),
    );
    if row.replies == [ALLOWED] {
        let paths = [
            "Cargo.lock",
            "products/made.txt",
            "target/made.txt",
            "codeRollup.sh",
        ];
        let read = paths.map(|path| scene.project.read(path).unwrap_or_default());
        table.same(
            "what was written",
            "lock\nmade\nmade\ntrue\n",
            &read.concat(),
        );
    }
}

/// The lines between these marks.
fn between(reply: &str, start: &str, end: &str) -> String {
    let mut parts = reply
        .split_inclusive('\n')
        .skip_while(|line| line.trim_end() != start)
        .skip(1);
    parts
        .by_ref()
        .take_while(|line| line.trim_end() != end)
        .collect()
}

/// The files of a reply with their fences.
fn suggested_files(reply: &str) -> String {
    let mut is_open = false;
    let mut files = String::new();
    for line in reply.split_inclusive('\n') {
        let ends = ["^^^end", "^^^delete"].contains(&line.trim_end());
        is_open |= line.starts_with("^^^");
        if is_open {
            files += line;
        }
        is_open &= !ends;
    }
    files
}

#[test]
fn s0_refuses_to_begin_without_what_it_reads() {
    let inputs = ["query.txt", "codeRollup.txt", "gemini-system-prompt.txt"];
    let files = [&inputs[..], &["build.sh"]].concat();
    needs("S0", &files, || with_inputs(&rows()[0]), implement);
}
