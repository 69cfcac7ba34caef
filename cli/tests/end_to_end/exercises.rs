//! What answers cost: whole files against edits.
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
}

/// Runs an exercise to green.
fn run(folder: &Path, form: As) -> Cost {
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
    let ran = scene.commit(&[&["-m", &query][..], edits].concat());
    assert_eq!(
        (ran.code, scene.server.steps_left()),
        (Some(0), 0),
        "{}: {ran}",
        folder.display()
    );
    now.extend(state);
    now.iter()
        .for_each(|(path, text)| assert_eq!(&scene.project.read(path).unwrap(), text, "{path}"));
    Cost {
        answers: answers.iter().map(String::len).sum(),
        rounds: answers.len(),
    }
}

/// The names of an exercise's columns.
const HEAD: &str = "exercise                              rounds    files    edits  smaller";

#[test]
fn edits_are_smaller_than_whole_files() {
    let folders: Vec<PathBuf> = files::entries(home("exercises"))
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(folders.len(), 10);
    let play = |folder: &PathBuf| [As::Files, As::Edits].map(|form| run(folder, form));
    let costs: Vec<[Cost; 2]> = std::thread::scope(|scope| {
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
    for (folder, [whole, edits]) in folders.iter().zip(&costs) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let smaller = whole.answers / edits.answers;
        eprintln!(
            "{name:37} {:>6} {:>8} {:>8} {:>7}x",
            whole.rounds, whole.answers, edits.answers, smaller
        );
        assert_eq!(whole.rounds, edits.rounds);
        assert!(
            !name.starts_with("001") || smaller >= 20,
            "{name}: {smaller}"
        );
    }
    let sum = |form: fn(&[Cost; 2]) -> usize| costs.iter().map(form).sum::<usize>();
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
