//! The index of words of a large tree: made on the second use, used, brought up to date, made again when damaged.

use std::fs;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;

fn git(root: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"];
    let git = Command::new("git")
        .args(identity)
        .args(args)
        .current_dir(root)
        .output();
    assert!(git.unwrap().status.success(), "git {args:?}");
}

#[test]
fn an_index_is_made_used_brought_up_to_date_and_made_again_when_damaged() {
    let files: Vec<(String, String)> = (0..4_100)
        .map(|at| {
            (
                format!("src/d{}/m{at}.rs", at / 100),
                format!("fn word_{at}() {{}}\n"),
            )
        })
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let scene = Scene::with_files(&files, Script::new([Step::text("")]));
    let root = scene.project.root();
    let index = root.join(".git/code-commit/words");
    let rolled_up = |query: &str| {
        fs::write(root.join("agent-config/query.txt"), query).unwrap();
        let ran = scene.run(&["rollup", "--budget", "1000"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        fs::read_to_string(root.join("agent-config/codeRollup.txt")).unwrap()
    };

    rolled_up("no run has made the folder of state");
    assert!(!index.exists());
    fs::create_dir(root.join(".git/code-commit")).unwrap();
    rolled_up("first use");
    let empty = fs::metadata(&index).unwrap().len();
    let without = rolled_up("word_77");
    assert!(without.contains("FILE src/d0/m77.rs"), "{without}");
    let made = fs::metadata(&index).unwrap().len();
    assert!(made > empty);
    assert_eq!(rolled_up("word_77"), without, "the same with the index");

    // What is not committed yet is read from the tree.
    fs::write(root.join("src/d9/m999.rs"), "fn zebra() {}\n").unwrap();
    assert!(rolled_up("zebra").contains("FILE src/d9/m999.rs ---\nfn zebra() {}\n"));
    assert_eq!(
        fs::metadata(&index).unwrap().len(),
        made,
        "one file is not worth it"
    );
    for at in 0..100 {
        fs::write(
            root.join(format!("src/d1/m{}.rs", 100 + at)),
            format!("fn lion_{at}() {{}}\n"),
        )
        .unwrap();
    }
    git(root, &["commit", "-qam", "More"]);
    assert!(rolled_up("lion_7").contains("fn lion_7() {}"));
    let longer = fs::metadata(&index).unwrap().len();
    assert!(longer > made, "brought up to date");

    let whole = fs::read(&index).unwrap();
    let (mut flipped, half) = (whole.clone(), whole.len() / 2);
    flipped[half] ^= 1;
    for damaged in [&whole[..half], &flipped, b"", b"of somebody else"] {
        fs::write(&index, damaged).unwrap();
        assert!(rolled_up("lion_7").contains("fn lion_7() {}"));
        let again = fs::read(&index).unwrap();
        assert!(again.len() > whole.len() / 2 && again != damaged);
    }
    let huge = fs::File::create(&index).unwrap();
    huge.set_len(300 << 20).unwrap();
    assert!(rolled_up("lion_7").contains("fn lion_7() {}"));
    assert!(fs::metadata(&index).unwrap().len() < 2 * longer);
}
