//! Ignore rules: those of a build, and files that git tracks in spite of them.

use super::*;

pub(super) fn git(root: &Path, args: &[&str]) {
    let mut git = std::process::Command::new("git");
    assert!(
        git.args(["-C", root.to_str().unwrap()])
            .args(args)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_folder_of_which_git_would_track_a_file_does_not_vanish() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "a\n")]).works(place);
        let accounted = project.command(|root| {
            for (path, text) in [
                ("data/.gitignore", "*\n!keep.txt\n!.gitignore\n"),
                ("data/keep.txt", "keep\n"),
                ("data/other", "other\n"),
                ("cache/.gitignore", "# made by a tool\n*\n"),
                ("cache/v/lots", "lots\n"),
                ("empty/.gitignore", "*\n!.gitignore\n"),
            ] {
                fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
                fs::write(root.join(path), text).unwrap();
            }
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&accounted), @r"
            A data/keep.txt
            A data/other
            put back data/.gitignore
            put back empty/.gitignore
            ");
        }
        assert!(!project.root().join("cache").exists(), "{place:?}");
    }
}

#[test]
fn undo_restores_tracked_files_that_an_ignore_pattern_matches() {
    for place in [Where::Tree, Where::View] {
        let tracked = [
            "a.o",
            "gone.o",
            "out/deep/keep",
            "out/gone",
            "all/gone",
            "anew.o/keep",
            "same.o/keep",
        ];
        let mut project = Project::new(&[(".gitignore", "*.o\nout/\nall/\n")]).works(place);
        for path in tracked {
            project.write(path, "old\n");
        }
        git(&project.root(), &["add", "-f", "."]);
        for path in ["cache.o", "out/cache", "all/cache"] {
            project.write(path, "old\n");
        }
        let before = project.all();
        let accounted = project.command(|root| {
            for path in ["a.o", "cache.o", "out/deep/keep", "out/cache"] {
                fs::write(root.join(path), "built\n").unwrap();
            }
            for path in ["gone.o", "out/gone"] {
                fs::remove_file(root.join(path)).unwrap();
            }
            for path in ["all", "anew.o"] {
                fs::remove_dir_all(root.join(path)).unwrap();
            }
            fs::create_dir(root.join("anew.o")).unwrap();
            fs::write(root.join("anew.o/keep"), "built\n").unwrap();
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&accounted), @r"
            M a.o
            D all/gone
            M anew.o/keep
            D gone.o
            M out/deep/keep
            D out/gone
            ");
        }
        project.undo();
        let mut now = project.all();
        for (path, text) in [("cache.o", "built\n"), ("out/cache", "built\n")] {
            let cache = now
                .insert(path.into(), before[Path::new(path)].clone())
                .unwrap();
            assert_eq!(cache.1, text.as_bytes(), "{place:?}");
        }
        now.insert("all/cache".into(), before[Path::new("all/cache")].clone());
        assert_eq!(now, before, "{place:?}");
        // Everything, after a kill.
        project.begin(|root| fs::write(root.join("out/deep/keep"), "built\n").unwrap());
        project.settle();
        assert_eq!(project.read("out/deep/keep"), "old\n", "{place:?}");
    }
}

#[test]
fn what_stands_in_the_place_of_a_tracked_file_is_accounted_for_like_that_file() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[(".gitignore", "*.o\n"), ("a.o", "old\n")]).works(place);
        git(&project.root(), &["add", "-f", "."]);
        let before = project.all();
        let accounted = project.command(|root| {
            fs::remove_file(root.join("a.o")).unwrap();
            fs::create_dir(root.join("a.o")).unwrap();
            fs::write(root.join("a.o/inner"), "built\n").unwrap();
            fs::write(root.join("a.o/.envrc"), "built\n").unwrap();
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&accounted), @r"
            D a.o
            A a.o/inner
            put back a.o/.envrc
            ");
        }
        project.undo();
        assert_eq!(project.all(), before, "{place:?}");
    }
}
