//! S1: one attempt and three repairs.

use super::{
    BUILD, CODEBASE, HALF, Logs, NOTHING, OTHER_HALF, PROSE, QUERY, Row, Table, WHOLE, WITHOUT_NEW,
    alike, count, judge, needs, prompts, row, scene, without_ours,
};
use crate::scenes::commit::Scene;

const STRUCTURE: &str = include_str!("../../../prompt/text/commit/project-structure.md");
const INSTRUCTIONS: &str = include_str!("../../../prompt/text/commit/modification-instructions.md");
const INITIAL: &str = include_str!("../../../prompt/text/commit/initial-query.md");

/// The critical files of the seed, four to a run, each with a file that would be fine.
const CRITICAL: [&[&str]; 3] = [
    &[
        "^^^work.txt\nwhole\n^^^end\n^^^.gitignore\nx\n^^^end\n",
        "^^^Cargo.lock\nx\n^^^end\n^^^work.txt\nwhole\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^build.sh\nexit 0\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^codeRollup.sh\nx\n^^^end\n",
    ],
    &[
        "^^^work.txt\nwhole\n^^^end\n^^^LLMInstructions.md\nx\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^docs/UserSpecification.md\nx\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^.git/hooks/post-commit\nx\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^agent-config/query.txt\nx\n^^^end\n",
    ],
    &[
        "^^^work.txt\nwhole\n^^^end\n^^^target/x\nx\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^products/x\nx\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^sub/../../outside.txt\nx\n^^^end\n",
        "^^^work.txt\nwhole\n^^^end\n^^^build.sh\n^^^delete\n",
    ],
];

fn rows() -> Vec<Row> {
    let own = [
        row("critical files, 1 to 4", CRITICAL[0], BUILD, [4, 0, 1]),
        row("critical files, 5 to 8", CRITICAL[1], BUILD, [4, 0, 1]),
        row("critical files, 9 to 12", CRITICAL[2], BUILD, [4, 0, 1]),
        row(
            "half, half, deleted, right",
            &[HALF, OTHER_HALF, WITHOUT_NEW, WHOLE],
            BUILD,
            [4, 4, 0],
        ),
        row(
            "half, prose, right",
            &[HALF, PROSE, WHOLE],
            BUILD,
            [3, 2, 0],
        ),
    ];
    alike(4).into_iter().chain(own).collect()
}

fn with_inputs(row: &Row) -> Scene {
    let inputs = [
        ("agent-config/query.txt", QUERY),
        ("agent-config/codeRollup.txt", CODEBASE),
    ];
    scene(row, &inputs)
}

#[test]
fn s1_counts_what_its_seed_counts() {
    judge("S1", &rows(), check);
}

fn check(table: &mut Table, row: &Row) {
    let scene = with_inputs(row);
    let ran = scene.commit(&[]);
    let logs = Logs {
        folder: scene.runs().pop().unwrap(),
        kinds: [
            "N-query.txt",
            "N-response.json",
            "N-response.txt",
            "N-build.txt",
        ],
    };
    count(table, row, &scene, &ran, &logs);
    let sent = prompts(&scene.server);
    let rules = rules(table, &sent[0]);
    let first = [&rules, INITIAL, "\n", QUERY, "\n", CODEBASE].concat();
    table.same("prompt 1", &first, &sent[0]);
    let (mut replaced, mut last_build) = (Vec::new(), String::new());
    let mut repair_query = String::new();
    for (n, sent) in (2..).zip(sent.iter().skip(1)) {
        let seeds = without_ours(table, sent);
        let mut failure = logs.text(3, n - 1);
        if applies(row, n - 1) {
            replace(&mut replaced, row.reply(n - 1));
            last_build.clone_from(&failure);
        } else if !last_build.is_empty() {
            failure += &format!("\nBefore that reply, build.sh had printed:\n{last_build}");
        }
        let replacements: String = replaced.iter().map(|(_, shown)| shown.as_str()).collect();
        let end = format!("{failure}\n{QUERY}\n{CODEBASE}\n{replacements}");
        if n == 2 {
            // Its words are ours, and the same in all repairs.
            let own = seeds
                .strip_prefix(&rules)
                .and_then(|rest| rest.strip_suffix(&end));
            repair_query.push_str(own.unwrap_or("[repair query system prompt]\n"));
            table.holds(
                "the repair query holds nothing else",
                !repair_query.contains(QUERY),
            );
        }
        table.same(
            &format!("prompt {n}"),
            &[&*rules, &repair_query, &end].concat(),
            &seeds,
        );
    }
    if row.builds == 0 {
        let status = scene.status();
        table.same("of a bad reply nothing is written", "", &status);
    }
    if row.replies == [HALF] {
        let left = scene.read("work.txt");
        table.same("what a failed run changed stays", "half\n", &left);
    }
}

/// Whether the n-th reply is written and built.
fn applies(row: &Row, n: usize) -> bool {
    row.builds > 0 && ![PROSE, NOTHING].contains(&row.reply(n))
}

/// The two system prompts that all prompts begin with. The list of names is longer than the seed's.
fn rules(table: &mut Table, prompt: &str) -> String {
    let begin = [STRUCTURE, "\n", INSTRUCTIONS].concat();
    let list: String = prompt
        .strip_prefix(&begin)
        .unwrap_or_default()
        .split_inclusive('\n')
        .take_while(|line| line.starts_with("+ "))
        .collect();
    for name in [
        ".gitignore",
        "Cargo.lock",
        "build.sh",
        "codeRollup.sh",
        "LLMInstructions.md",
        "any file named UserSpecification.md",
        "anything in a .git folder",
        "anything in the agent-config folder",
        "anything in the target folder",
        "anything that .gitignore names",
    ] {
        table.holds(
            &format!("{name} is listed"),
            list.contains(&format!("{name}\n")),
        );
    }
    [begin, list, "\n".to_owned()].concat()
}

/// The latest replacement of each file, as a repair shows it.
fn replace(replaced: &mut Vec<(String, String)>, reply: &str) {
    let mut blocks = reply.split("^^^").skip(1);
    while let (Some(block), Some(end)) = (blocks.next(), blocks.next()) {
        let (path, data) = block.split_once('\n').unwrap();
        let shown = if end.starts_with("delete") {
            format!("--- FILE REMOVED {path} ---\n")
        } else {
            format!("--- FILE REPLACEMENT {path} ---\n{data}")
        };
        replaced.retain(|(known, _)| known != path);
        replaced.push((path.to_owned(), shown));
    }
}

#[test]
fn s1_refuses_to_begin_without_what_it_reads() {
    let files = [
        "agent-config/query.txt",
        "agent-config/codeRollup.txt",
        "build.sh",
    ];
    let run = |scene: &Scene| scene.commit(&[]);
    needs("S1", &files, || with_inputs(&rows()[0]), run);
}
