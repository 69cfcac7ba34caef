//! The pages: short, and true where they name commands.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::Script;

use crate::scene::{COMMIT, DATABASE, PROGRAM, command, has, run, scene, script};

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/many-machines");

fn pages() -> BTreeMap<String, String> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(&path).unwrap())
    };
    fs::read_dir(PAGES).unwrap().map(read).collect()
}

#[test]
fn the_pages_are_short_and_every_command_and_flag_of_them_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for (name, page) in pages() {
        assert!(page.lines().count() <= 60, "{name}");
    }
    let text: String = pages().into_values().chain([readme]).collect();
    let mut flags = 0;
    for line in text.lines() {
        for place in line
            .split(['`', ' '])
            .filter(|word| word.starts_with("gateway/"))
        {
            assert!(root.join(place).exists(), "{place}");
        }
        let Some((_, words)) = line.split_once("code-commit-gateway ") else {
            continue;
        };
        let mut words = words
            .split(['`', '|', '>'])
            .next()
            .unwrap()
            .split_whitespace();
        let verb = words.next().unwrap_or_default();
        let help = command(PROGRAM, verb).arg("--help").output().unwrap();
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for flag in words.filter(|word| word.len() > 2 && word.starts_with("--")) {
            has(&help, flag);
            flags += 1;
        }
    }
    assert!(flags > 10, "{flags}");
}

#[test]
fn each_result_that_passed_becomes_a_pull_request() {
    let scene = scene!(Script::default(), "");
    let project = Project::with(&[("a", "a\n")]).unwrap();
    let git = |words: &str| project.git(&words.split(' ').collect::<Vec<_>>()).unwrap();
    git("clone -q --bare . ../hub.git");
    git("remote add origin ../hub.git");
    let commit = git("rev-parse HEAD").trim().to_owned();
    let reference = "refs/code-commit/one/1";
    git(&format!("push -q origin {commit}:{reference}"));
    let token = scene.begin("one");
    assert_eq!(scene.finish(&token), 200);
    scene.postgres.query(&format!(
        "UPDATE orders SET commit = replace(commit, '{COMMIT}', '{commit}')"
    ));
    scene.begin("two");
    script(&scene.file("gh"), "echo \"$*\" >>\"$SEEN\"");
    let page = &pages()["github"];
    let block = page
        .rsplit("```text\n")
        .next()
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let block = block.replace("--batch spring", "--batch b");
    let programs = Path::new(PROGRAM).parent().unwrap().display();
    let (gh, path) = (
        scene.folder.path().display(),
        std::env::var("PATH").unwrap(),
    );
    let mut bash = command("bash", "-euo pipefail -c");
    bash.arg(block)
        .current_dir(project.root())
        .env("SEEN", scene.file("seen"));
    bash.env("PATH", format!("{gh}:{programs}:{path}"));
    run(bash.env(DATABASE, scene.postgres.address("postgres")));
    let seen = fs::read_to_string(scene.file("seen")).unwrap();
    assert_eq!(
        seen,
        format!("pr create --head code-commit/one --title one --body {reference}\n")
    );
    let listed = git("ls-remote origin refs/heads/code-commit/*");
    assert_eq!(listed, format!("{commit}\trefs/heads/code-commit/one\n"));
}
