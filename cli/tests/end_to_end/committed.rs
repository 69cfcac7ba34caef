//! `--commit`: a run that counts is committed, once, with the files that it changed and nothing else.

use std::fs;

use code_commit_fixtures::server::{Script, Step};
use serde_json::Value;

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::{Ran, must_have, program};

const GOOD: &str = "^^^lines.txt\nnew\n^^^end\n^^^made.txt\nmade\n^^^end\n^^^gone.txt\n^^^delete\n";
const BAD: &str = "^^^lines.txt\nnew\n^^^end\n";
const FILES: [(&str, &str); 6] = [
    (".gitignore", "agent-config\n/agent-config\n"),
    ("build.sh", "#!/bin/sh\ntest -e made.txt\n"),
    ("lines.txt", "old\n"),
    ("gone.txt", "gone\n"),
    ("mine.txt", "mine\n"),
    ("agent-config/query.txt", "\nMake it pass.\nAll of it.\n"),
];

/// A project whose build is red before `made.txt`, a model that always says the same, and a name to commit in.
fn scene(reply: &str) -> Scene {
    scene_with(Script::new([]).rule("enerateContent", Step::text(reply)))
}

fn scene_with(script: Script) -> Scene {
    let scene = Scene::with_files(&FILES, script);
    git(&scene, &["config", "user.name", "A Person"]);
    git(&scene, &["config", "user.email", "person@example.invalid"]);
    scene
}

fn git(scene: &Scene, words: &[&str]) -> String {
    scene.git(words)
}

fn commits(scene: &Scene) -> usize {
    git(scene, &["rev-list", "--count", "HEAD"])
        .trim()
        .parse()
        .unwrap()
}

fn head(scene: &Scene) -> String {
    git(scene, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// Author, message and files of the newest commit.
fn newest(scene: &Scene) -> String {
    let run = scene.runs().pop().unwrap();
    let name = files::name(&run);
    let shown = git(
        scene,
        &[
            "show",
            "--format=%an%n%B",
            "--name-status",
            "--no-renames",
            "HEAD",
        ],
    );
    shown.replace(&name, "[RUN]")
}

fn json(scene: &Scene, words: &[&str]) -> (Option<i32>, Vec<Value>) {
    let ran = Ran::of(&mut scene.keyed(&[words, &["--json"]].concat(), &[]));
    (ran.code, ran.objects())
}

#[test]
fn a_green_run_commits_what_it_changed_and_leaves_the_rest_of_tree_and_index() {
    let scene = scene(GOOD);
    scene.write("staged.txt", "staged\n");
    git(&scene, &["add", "staged.txt"]);
    scene.write("mine.txt", "mine, and more\n");
    scene.write("new.txt", "new\n");
    let (code, said) = json(&scene, &[&scene.flags()[..], &["--commit"]].concat());
    assert_eq!((code, commits(&scene)), (Some(0), 2), "{said:?}");
    insta::assert_snapshot!(newest(&scene), @r"
    A Person
    Make it pass.

    Run: [RUN]


    D	gone.txt
    M	lines.txt
    A	made.txt
    ");
    assert_eq!(scene.status(), " M mine.txt\nA  staged.txt\n?? new.txt\n");
    let summary = said.iter().find(|line| line["event"] == "summary").unwrap();
    assert_eq!(summary["summary"]["commit"], head(&scene).as_str());
    must_have(
        &scene.recorded("events.jsonl"),
        &format!("\"commit\":\"{}\"", head(&scene)),
    );
    let shown = scene.run(&["show"]);
    shown.out_has(&format!("committed as {}", head(&scene)));
}

#[test]
fn a_project_below_the_top_of_its_repository_commits_its_own_files() {
    let scene = scene(GOOD);
    scene.write("below/.gitignore", "/agent-config\n");
    for file in [
        "build.sh",
        "lines.txt",
        "gone.txt",
        "agent-config/query.txt",
    ] {
        scene.write(&format!("below/{file}"), scene.read(file).as_bytes());
    }
    scene.project.commit("a project below").unwrap();
    let below = scene.at("below");
    let ran = |words: &[&str]| {
        Ran::of(&mut program(
            &below,
            scene.project.beside(),
            words,
            &[("GEMINI_API_KEY", KEY)],
        ))
    };
    assert_eq!(ran(&["rollup"]).code, Some(0));
    let ran = ran(&[&scene.flags()[..], &["--commit", "-m", "Below."]].concat());
    assert_eq!((ran.code, commits(&scene)), (Some(0), 3), "{ran}");
    let files = git(&scene, &["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(files, "below/gone.txt\nbelow/lines.txt\nbelow/made.txt\n");
}

#[test]
fn where_git_could_not_commit_no_model_is_asked() {
    let scene = scene(GOOD);
    git(&scene, &["config", "--unset", "user.email"]);
    git(&scene, &["config", "user.useConfigOnly", "true"]);
    let unknown = scene.commit(&["--commit"]).exits(3);
    unknown.err_has("git config user.email");
    git(&scene, &["config", "user.email", "person@example.invalid"]);
    fs::File::create(scene.at(".git/MERGE_HEAD")).unwrap();
    let merging = scene.commit(&["--commit"]).exits(3);
    merging.err_has("finish the merge");
    assert_eq!(scene.calls(), 0);
}

#[test]
fn where_git_refuses_a_green_run_says_so_and_keeps_its_changes() {
    let scene = scene(GOOD);
    // Another git begins to work while the build does.
    scene.write(
        "build.sh",
        "#!/bin/sh\ntest -e made.txt && touch .git/index.lock\n",
    );
    let ran = scene.commit(&["--commit"]);
    assert_eq!((ran.code, commits(&scene)), (Some(70), 1), "{ran}");
    ran.out_has("the build passes")
        .err_has("commit them by hand");
    assert!(scene.at("made.txt").exists());
}

#[test]
fn what_git_keeps_out_of_the_work_tree_is_refused_and_what_a_build_leaves_there_is_committed() {
    let far = "^^^lines.txt\nnew\n^^^end\n^^^far/new.txt\n1\n^^^end\n";
    let scene = scene_with(Script::new([far, BAD].map(Step::text)));
    scene.write("far/old.txt", "old\n");
    scene.write(
        "build.sh",
        "#!/bin/sh\nmkdir -p far && echo made >far/made.txt\n",
    );
    scene.project.commit("far").unwrap();
    git(&scene, &["sparse-checkout", "set", "near"]);
    let before = commits(&scene);
    let ran = scene.commit(&["--commit", "--rounds", "1"]).exits(1);
    ran.err_has("far/new.txt` is kept out of the work tree by git");
    assert_eq!(commits(&scene), before);
    scene.commit(&["--commit", "--new"]).exits(0);
    let files = git(&scene, &["show", "--format=", "--name-only"]);
    assert_eq!(files, "far/made.txt\nlines.txt\n");
}

#[test]
fn a_file_of_the_run_that_changed_while_the_build_ran_is_not_committed() {
    let scene = scene(GOOD);
    // Without a view of the tree nothing tells the build from a person who saves.
    let build = b"#!/bin/sh\necho saved >lines.txt\ntest -e made.txt\n";
    scene.write("build.sh", build);
    let ran = scene.commit(&["--commit"]);
    assert_eq!((ran.code, commits(&scene)), (Some(1), 1), "{ran}");
    ran.out_has("the build passes")
        .err_has("lines.txt")
        .err_has("run the build again");
    assert_eq!(scene.read("lines.txt"), "saved\n");
}

/// A git that saves over a file when it is called to commit.
fn git_that_saves(scene: &Scene) -> std::path::PathBuf {
    let git = Ran::of(std::process::Command::new("sh").args(["-c", "command -v git"])).out;
    let (folder, root) = (scene.beside("bin"), scene.project.root());
    let saves = format!("echo saved >'{}/lines.txt'", root.display());
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' commit '*) {saves};; esac\nexec {} \"$@\"\n",
        git.trim()
    );
    files::write_program(&folder.join("git"), &script);
    folder
}

#[test]
fn what_somebody_saves_while_git_commits_is_taken_out_of_the_history_again() {
    let scene = scene(GOOD);
    let path = format!(
        "{}:{}",
        git_that_saves(&scene).display(),
        std::env::var("PATH").unwrap()
    );
    let words = [&scene.flags()[..], &["--commit"]].concat();
    let ran = Ran::of(&mut scene.keyed(&words, &[("PATH", &path)]));
    assert_eq!((ran.code, commits(&scene)), (Some(1), 1), "{ran}");
    ran.err_has("lines.txt");
    assert_eq!(scene.read("lines.txt"), "saved\n");
}

#[test]
fn a_run_that_was_killed_before_its_commit_was_recorded_commits_once() {
    let made = scene(GOOD);
    assert_eq!(made.commit(&["--commit"]).code, Some(0));
    let commit = head(&made);
    forget_the_commit(&made);
    // The commit is there, and somebody has gone on since.
    git(&made, &["commit", "-q", "--allow-empty", "-m", "another"]);
    let resumed = made.run_keyed(&["resume"]);
    assert_eq!((resumed.code, commits(&made)), (Some(0), 3), "{resumed}");
    resumed.out_has(&format!("committed as {commit}"));
    let lost = scene(GOOD);
    assert_eq!(lost.commit(&["--commit"]).code, Some(0));
    forget_the_commit(&lost);
    git(&lost, &["reset", "-q", "--mixed", "HEAD~1"]);
    let resumed = lost.run_keyed(&["resume"]);
    assert_eq!((resumed.code, commits(&lost)), (Some(0), 2), "{resumed}");
    assert_eq!(lost.status(), "");
    assert_eq!((made.calls(), lost.calls()), (1, 1), "paid once");
}

/// Cuts the last lines of the journal, as a kill right after the commit would.
fn forget_the_commit(scene: &Scene) {
    let journal = scene.runs().pop().unwrap().join("events.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let end = text
        .lines()
        .position(|line| line.contains("\"what\":\"committed\""))
        .unwrap();
    let kept: String = text.split_inclusive('\n').take(end).collect();
    fs::write(&journal, kept).unwrap();
}
