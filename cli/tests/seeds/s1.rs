//! S1: one attempt and three repairs.

use super::{
    ALWAYS_GREEN, BUILD, CODEBASE, HALF, LACKS_A_TOOL, LOSES_ITS_INTERPRETER, NO_CHANGE, NOTHING,
    OTHER_HALF, PLACEHOLDER, PROSE, QUERY, RED, Row, THOUGHT_ONLY, TRAVERSAL, Table, WHOLE,
    WITHOUT_NEW, count, logged, prompts, row, scene, text, without_ours,
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

const ROWS: &[Row] = &[
    row("the same change for ever", &[HALF], BUILD, [4, 4, 1]),
    row("prose for ever", &[PROSE], BUILD, [4, 0, 1]),
    row("nothing for ever", &[NOTHING], BUILD, [4, 0, 1]),
    row(
        "a thought and no text for ever",
        &[THOUGHT_ONLY],
        BUILD,
        [4, 0, 1],
    ),
    row("a traversal for ever", &[TRAVERSAL], BUILD, [4, 0, 1]),
    row("$$$ for ever, red", &[NO_CHANGE], BUILD, [4, 4, 1]),
    row("$$$, green", &[NO_CHANGE], ALWAYS_GREEN, [1, 1, 0]),
    row("critical files, 1 to 4", CRITICAL[0], BUILD, [4, 0, 1]),
    row("critical files, 5 to 8", CRITICAL[1], BUILD, [4, 0, 1]),
    row("critical files, 9 to 12", CRITICAL[2], BUILD, [4, 0, 1]),
    row("right at once", &[WHOLE], BUILD, [1, 1, 0]),
    row(
        "right at once, and green before",
        &[WHOLE],
        ALWAYS_GREEN,
        [1, 1, 0],
    ),
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
    row("a placeholder for ever", &[PLACEHOLDER], BUILD, [4, 4, 1]),
    row(
        "a tool is missing: red like any other",
        &[HALF],
        LACKS_A_TOOL,
        [4, 4, 1],
    ),
    row(
        "the build cannot be started",
        &[HALF],
        LOSES_ITS_INTERPRETER,
        [2, 1, 8],
    ),
];

fn with_inputs(row: &Row) -> Scene {
    let inputs = [
        ("agent-config/query.txt", QUERY),
        ("agent-config/codeRollup.txt", CODEBASE),
    ];
    scene(row, &inputs)
}

#[test]
fn s1_counts_what_its_seed_counts() {
    let mut table = Table::of("S1");
    for row in ROWS {
        check(&mut table, row);
    }
    table.finish();
}

fn check(table: &mut Table, row: &Row) {
    let scene = with_inputs(row);
    let ran = scene.commit(&[]);
    count(table, row, &scene, &ran);
    let folder = scene.runs().pop().unwrap();
    let log = |name: &str| text(&folder.join(name));
    let of_a_call =
        |n| ["query.txt", "response.json", "response.txt"].map(|kind| format!("{n}-{kind}"));
    let mut names: Vec<String> = (1..=row.calls).flat_map(of_a_call).collect();
    // Only a build has an output.
    let is_built = |n: &usize| log(&format!("{n}-response.txt")) != "" && applies(row, *n);
    names.extend(
        (1..=row.calls)
            .filter(is_built)
            .map(|n| format!("{n}-build.txt")),
    );
    logged(table, &folder, "-commit", &names, r"^\d+-");
    let sent = prompts(&scene.server);
    let rules = rules(table, &sent[0]);
    table.same(
        "prompt 1",
        &[&rules, INITIAL, "\n", QUERY, "\n", CODEBASE].concat(),
        &sent[0],
    );
    let (mut replaced, mut last_build) = (Vec::new(), None);
    let mut repair_query = None;
    for (n, sent) in (1..).zip(&sent) {
        let what = format!("prompt {n}");
        table.same(
            &format!("{what} in the log"),
            sent,
            &log(&format!("{n}-query.txt")),
        );
        if n == 1 {
            continue;
        }
        let failed = n - 1;
        if applies(row, failed) {
            replace(&mut replaced, reply(row, failed));
            last_build = Some(log(&format!("{failed}-build.txt")));
            if row.build == BUILD {
                table.same(
                    "the output of the build",
                    RED,
                    last_build.as_deref().unwrap(),
                );
            }
        }
        let (seeds, ours) = without_ours(sent);
        let is_listed = |line: &&str| line.starts_with("[code-commit] This is the same failure");
        table.holds(
            &format!("{what}: {ours:?} is listed"),
            ours.iter().all(is_listed),
        );
        let replacements: String = replaced.iter().map(|(_, shown)| shown.as_str()).collect();
        let output = last_build.clone().unwrap_or_default();
        let end = [
            output.as_str(),
            "\n",
            QUERY,
            "\n",
            CODEBASE,
            "\n",
            &replacements,
        ]
        .concat();
        let own = seeds
            .strip_prefix(&rules)
            .and_then(|rest| rest.strip_suffix(&end));
        table.holds(
            &format!("{what} has the seed's parts in its order:\n{seeds}"),
            own.is_some(),
        );
        let own = own.unwrap_or_default();
        if applies(row, failed) {
            table.same(
                "the repair query",
                repair_query.get_or_insert_with(|| own.to_owned()),
                own,
            );
            table.holds(
                "the repair query is ours alone",
                !own.contains(QUERY.trim()) && !own.contains("exit code"),
            );
        } else {
            table.holds("the reason is told", own.contains("The reply was not used"));
        }
    }
    if row.builds == 0 {
        let status = scene.project.status().unwrap();
        table.same("of a bad reply nothing is written", "", &status);
    }
}

fn reply(row: &Row, n: usize) -> &'static str {
    row.replies.get(n - 1).or(row.replies.last()).unwrap()
}

/// Whether the n-th reply is written and built.
fn applies(row: &Row, n: usize) -> bool {
    row.builds > 0 && ![PROSE, NOTHING].contains(&reply(row, n))
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
    let mut table = Table::of("S1");
    for missing in [
        "agent-config/query.txt",
        "agent-config/codeRollup.txt",
        "build.sh",
    ] {
        let scene = with_inputs(&ROWS[0]);
        std::fs::remove_file(scene.project.root().join(missing)).unwrap();
        let ran = scene.commit(&[]);
        let calls = scene.server.requests().len();
        table.row(
            &format!("without {missing}"),
            &ran,
            3,
            "calls",
            &[0],
            &[calls],
        );
    }
    table.finish();
}
