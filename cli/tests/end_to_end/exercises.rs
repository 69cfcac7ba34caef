//! What answers cost: whole files against edits, and the order of S1 against the one for caches.
//!
//! The table: `cargo test -p code-commit-cli --test end_to_end exercises:: -- --nocapture`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use code_commit_fixtures::projects;
use code_commit_fixtures::server::{Script, Step};
use code_commit_parser::edit::{self, Hunk};
use similar::{DiffTag, TextDiff};

use crate::scenes::commit::Scene;
use crate::scenes::files;

/// Texts by their path.
type Files = BTreeMap<String, String>;

fn home(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(folder)
}

/// The texts below a folder, as they are in a project.
fn tree(folder: &Path) -> Files {
    let of_project = |path: &Path| {
        path.strip_prefix(folder)
            .unwrap()
            .to_str()
            .unwrap()
            .replace("dot-git", ".git")
    };
    let files = files::below(folder)
        .into_iter()
        .filter(|path| !path.is_symlink());
    files
        .map(|path| (of_project(&path), files::text(&path)))
        .collect()
}

/// How a model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Files,
    Edits,
}

/// The answer that makes these changes.
fn answer(now: &Files, changes: &Files, form: As) -> String {
    let blocks = changes.iter().map(|(path, new)| match now.get(path) {
        Some(old) if form == As::Edits => {
            let hunks = hunks(old, new);
            let hunks: Vec<Hunk<'_>> = hunks
                .iter()
                .map(|(search, replace)| Hunk { search, replace })
                .collect();
            assert_eq!(
                edit::apply(old, hunks.iter().copied()).as_ref(),
                Ok(new),
                "{path}"
            );
            let [search, divider, replace] = edit::marks();
            let hunks: String = hunks
                .iter()
                .map(|hunk| {
                    format!(
                        "{search}\n{}{divider}\n{}{replace}\n",
                        hunk.search, hunk.replace
                    )
                })
                .collect();
            format!("^^^edit {path}\n{hunks}^^^end\n")
        }
        Some(_) | None => format!("^^^{path}\n{new}^^^end\n"),
    });
    blocks.collect()
}

/// Lines `old` that become lines `new`.
#[derive(Debug, Clone)]
struct Region {
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
}

/// The changed lines, with as many lines around them as make the old ones unique.
fn hunks(old: &str, new: &str) -> Vec<(String, String)> {
    let diff = TextDiff::from_lines(old, new);
    let lines = |text: &str, range: &std::ops::Range<usize>| -> String {
        text.split_inclusive('\n')
            .skip(range.start)
            .take(range.len())
            .collect()
    };
    let last = old.split_inclusive('\n').count();
    let is_unique = |region: &Region| {
        let search = format!("\n{}", lines(old, &region.old));
        search.len() > 1 && format!("\n{old}").match_indices(&search).count() == 1
    };
    let changed = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    let mut regions: Vec<Region> = changed
        .map(|op| Region {
            old: op.old_range(),
            new: op.new_range(),
        })
        .collect();
    while let Some(at) = regions.iter().position(|region| !is_unique(region)) {
        let Region { old, new } = &mut regions[at];
        if old.start > 0 {
            (old.start, new.start) = (old.start - 1, new.start - 1);
        }
        if old.end < last {
            (old.end, new.end) = (old.end + 1, new.end + 1);
        }
        regions = merged(&regions);
    }
    regions
        .iter()
        .map(|region| (lines(old, &region.old), lines(new, &region.new)))
        .collect()
}

/// Regions that touch are one.
fn merged(regions: &[Region]) -> Vec<Region> {
    let mut all: Vec<Region> = Vec::new();
    for next in regions {
        match all.last_mut() {
            Some(one) if next.old.start <= one.old.end => {
                let ends = (one.old.end.max(next.old.end), one.new.end.max(next.new.end));
                (one.old.end, one.new.end) = ends;
            }
            _ => all.push(next.clone()),
        }
    }
    all
}

/// What one run took.
struct Cost {
    answers: usize,
    rounds: usize,
    /// Bytes of all prompts.
    prompts: usize,
    /// The part of them that repeats the beginning of the prompt before: what a service caches at most.
    repeated: usize,
}

impl Cost {
    fn share(&self) -> usize {
        100 * self.repeated / self.prompts
    }
}

/// Runs an exercise to green.
fn run(folder: &Path, form: As, flags: &[&str]) -> Cost {
    let mut now = tree(&folder.join("before"));
    let scene_files: Vec<(&str, &str)> = now
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let steps: Vec<Files> = ["first", "after"]
        .map(|step| tree(&folder.join(step)))
        .into_iter()
        .filter(|step| !step.is_empty())
        .collect();
    let mut state = now.clone();
    let mut answers = Vec::new();
    for step in &steps {
        let changes: Files = step
            .iter()
            .filter(|(path, new)| state.get(*path) != Some(*new))
            .map(|(path, new)| (path.clone(), new.clone()))
            .collect();
        answers.push(answer(&state, &changes, form));
        state.extend(changes);
    }
    let script = Script::new(answers.iter().map(|answer| Step::text(answer)));
    let scene = Scene::with_files(&scene_files, script);
    let query = std::fs::read_to_string(folder.join("query.txt")).unwrap();
    let edits: &[&str] = if form == As::Edits { &["--edits"] } else { &[] };
    let ran = scene.commit(&[&["-m", &query][..], edits, flags].concat());
    assert_eq!(
        (ran.code, scene.server.steps_left()),
        (Some(0), 0),
        "{}: {ran}",
        folder.display()
    );
    now.extend(state);
    now.iter()
        .for_each(|(path, text)| assert_eq!(&scene.project.read(path).unwrap(), text, "{path}"));
    let prompts: Vec<String> = (1..=answers.len())
        .map(|round| scene.recorded(&format!("{round}-query.txt")))
        .collect();
    let same = |one: &String, next: &String| {
        one.bytes()
            .zip(next.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    Cost {
        answers: answers.iter().map(String::len).sum(),
        rounds: answers.len(),
        prompts: prompts.iter().map(String::len).sum(),
        repeated: prompts
            .windows(2)
            .map(|pair| same(&pair[0], &pair[1]))
            .sum(),
    }
}

/// The names of an exercise's columns.
const HEAD: &str = "exercise                              rounds    files    edits  smaller  repeated  --cache-order";

#[test]
fn edits_are_smaller_than_whole_files_and_the_order_for_caches_repeats_more() {
    let folders: Vec<PathBuf> = files::entries(home("exercises"))
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(folders.len(), 10);
    let play = |folder: &PathBuf| {
        [
            (As::Files, &[][..]),
            (As::Edits, &[]),
            (As::Edits, &["--cache-order"]),
        ]
        .map(|(form, flags)| run(folder, form, flags))
    };
    let costs: Vec<[Cost; 3]> = std::thread::scope(|scope| {
        let threads: Vec<_> = folders
            .iter()
            .map(|folder| scope.spawn(move || play(folder)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    eprintln!("{HEAD}");
    for (folder, [whole, edits, cached]) in folders.iter().zip(&costs) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let (smaller, seed, cache) = (whole.answers / edits.answers, edits.share(), cached.share());
        eprintln!(
            "{name:37} {:>6} {:>8} {:>8} {:>7}x {seed:>8}% {cache:>13}%",
            whole.rounds, whole.answers, edits.answers, smaller
        );
        assert_eq!(whole.rounds, edits.rounds);
        assert!(
            edits.rounds == 1 || cache > seed,
            "{name}: {seed} % and {cache} %"
        );
        assert!(
            !name.starts_with("001") || smaller >= 20,
            "{name}: {smaller}"
        );
    }
    let sum = |form: fn(&[Cost; 3]) -> usize| costs.iter().map(form).sum::<usize>();
    let (whole, edits) = (sum(|costs| costs[0].answers), sum(|costs| costs[1].answers));
    eprintln!(
        "all                                          {whole:>8} {edits:>8} {:>7}x",
        whole / edits
    );
    assert!(whole > 5 * edits, "{whole} and {edits}");
}

#[test]
fn the_changes_of_the_fixture_projects_are_smaller_as_edits_all_in_all() {
    let [mut whole, mut edits] = [0, 0];
    for name in projects::names().unwrap() {
        let [before, after] =
            ["before", "after"].map(|side| tree(&home("projects").join(&name).join(side)));
        let is_text = |text: &String| text.ends_with('\n') && !text.contains(['\u{fffd}', '\0']);
        let is_changed = |(path, new): &(&String, &String)| {
            let old = before.get(*path);
            old != Some(*new) && is_text(new) && old.is_none_or(is_text)
        };
        let changes: Files = after
            .iter()
            .filter(is_changed)
            .map(|(path, new)| (path.clone(), new.clone()))
            .collect();
        let [files, hunks] =
            [As::Files, As::Edits].map(|form| answer(&before, &changes, form).len());
        eprintln!("{name:45} {files:>8} {hunks:>8}");
        (whole, edits) = (whole + files, edits + hunks);
    }
    eprintln!("{:45} {whole:>8} {edits:>8}", "all");
    assert!(whole > 2 * edits, "{whole} and {edits}");
}

#[test]
fn a_focused_repair_sends_less_and_takes_as_many_rounds() {
    let file = |answer: u32| -> String {
        (1..=1000)
            .map(|n| {
                if n == 500 {
                    format!("answer={answer}\n")
                } else {
                    format!("line {n}\n")
                }
            })
            .collect()
    };
    let build = "#!/bin/sh\ni=0\nwhile [ $i -lt 2000 ]; do i=$((i + 1)); echo \"test t$i ... ok\"; done\n\
                 grep -q answer=42 big.txt || { echo 'test answer ... FAILED'; echo 'big.txt:500: not 42'; exit 1; }\n";
    let prompt = |config: &str| {
        let files = [
            (".gitignore", "/agent-config\n"),
            ("build.sh", build),
            ("code-commit.toml", config),
            ("big.txt", &file(40)),
        ];
        let replies =
            [41, 42].map(|answer| Step::text(&format!("^^^big.txt\n{}^^^end\n", file(answer))));
        let scene = Scene::with_files(&files, Script::new(replies));
        let ran = scene.commit(&["-m", "The answer is 42."]);
        assert_eq!((ran.code, scene.server.steps_left()), (Some(0), 0), "{ran}");
        scene.recorded("2-query.txt")
    };
    let (whole, focused) = (prompt(""), prompt("[prompt]\nrepair = \"focused\"\n"));
    eprintln!(
        "whole {} bytes, focused {} bytes, two rounds each",
        whole.len(),
        focused.len()
    );
    assert!(
        whole.len() > 3 * focused.len(),
        "{} and {}",
        whole.len(),
        focused.len()
    );
    for prompt in [&whole, &focused] {
        assert!(
            prompt.contains("\n[code-commit] Tests that failed: answer\n"),
            "{prompt}"
        );
        assert!(
            prompt.contains(
                "\nbig.txt:500\n   498 | line 498\n   499 | line 499\n>  500 | answer=41\n"
            ),
            "{prompt}"
        );
    }
    assert_eq!(
        (
            whole.matches("answer=40\n").count(),
            focused.matches("answer=40\n").count()
        ),
        (1, 0)
    );
    assert!(
        whole.contains("--- FILE REPLACEMENT big.txt ---\n")
            && !focused.contains("FILE REPLACEMENT")
    );
}
