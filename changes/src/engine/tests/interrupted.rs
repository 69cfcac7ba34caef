//! An account for which there is no time left.

use super::*;

#[test]
fn an_account_that_is_interrupted_leaves_the_tree_as_it_was_and_all_changes_in_one_folder() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a.txt", "old\n"), ("gone.txt", "mine\n")]).works(place);
        project.begin(|tree| {
            fs::write(tree.join("a.txt"), "new\n").unwrap();
            fs::create_dir(tree.join("made")).unwrap();
            fs::write(tree.join("made/b.txt"), "new\n").unwrap();
            fs::remove_file(tree.join("gone.txt")).unwrap();
        });
        let guard = Guard::open(&project.root(), Policy::commit()).unwrap();
        let (run, undo) = (project.run.clone(), project.undo_folder());
        let over = || Err(io::Error::other("over"));
        let accounted = project.account.close(&guard, &run, &undo, &over).unwrap();
        assert!(
            accounted.is_interrupted && accounted.changes.is_empty(),
            "{place:?}: {accounted:?}"
        );
        let read = |path: &str| fs::read_to_string(project.root().join(path)).ok();
        let tree = ["a.txt", "gone.txt", "made/b.txt"].map(read);
        assert_eq!(
            tree,
            [Some("old\n".into()), Some("mine\n".into()), None],
            "{place:?}"
        );
        let message = &accounted.warnings[0].message;
        let kept = Path::new(message.split("they are whole in ").nth(1).unwrap());
        let kept = match place {
            Where::Tree => kept.to_owned(),
            Where::View => kept.join("view/upper"),
        };
        let kept = ["a.txt", "made/b.txt"].map(|path| fs::read_to_string(kept.join(path)).unwrap());
        assert_eq!(kept, ["new\n", "new\n"], "{place:?}");
        assert!(!undo.exists() && project.settle().is_empty(), "{place:?}");
    }
}

/// Such as where the disk is full. A folder that ignores itself is not seen by git.
#[test]
fn what_could_not_be_restored_is_restored_once_it_can_be_even_if_that_failed_twice() {
    let tries_again: [fn(&mut Project, &Guard); 2] = [
        |project, guard| {
            let run = project.run.clone();
            project
                .account
                .reset(guard, &run, &mut Backup::of(&run))
                .unwrap();
        },
        |project, _| {
            assert_eq!(
                project.settle(),
                ["a.txt", "fresh", "fresh/.gitignore", "fresh/evil"]
            );
        },
    ];
    for try_again in tries_again {
        let mut project = Project::new(&[("a.txt", "old\n")]);
        let before = project.all();
        project.begin(|tree| {
            fs::write(tree.join("a.txt"), "new\n").unwrap();
            fs::create_dir(tree.join("fresh")).unwrap();
            fs::write(tree.join("fresh/.gitignore"), "*\n").unwrap();
            fs::write(tree.join("fresh/evil"), "evil\n").unwrap();
        });
        let guard = Guard::open(&project.root(), Policy::commit()).unwrap();
        let (run, nowhere) = (project.run.clone(), project.scratch.path().join("nowhere"));
        fs::write(&nowhere, "no folder\n").unwrap();
        for _ in 0..2 {
            let failed = project
                .account
                .reset(&guard, &run, &mut Backup::of(&nowhere))
                .unwrap_err();
            assert!(matches!(failed, Fault::NotPutBack { .. }), "{failed}");
        }
        try_again(&mut project, &guard);
        assert_eq!(project.all(), before);
    }
}

#[test]
fn of_paths_the_topmost_covers_what_is_below_it_and_nothing_beside_it() {
    let tops: crate::change::Tops = ["b/c", "b-c/d", "b", "a/x"]
        .map(Path::new)
        .into_iter()
        .collect();
    let over = |path: &str| tops.over(Path::new(path)).map(Path::to_owned);
    assert_eq!(over("b/c/d"), Some("b".into()));
    assert_eq!(over("b/d"), Some("b".into()));
    assert_eq!(over("b-c/d/e"), Some("b-c/d".into()));
    assert_eq!(
        [over("b-c"), over("a"), over("c"), over("b.c")],
        [None, None, None, None]
    );
    assert!(tops.has_below(Path::new("a")) && tops.has_below(Path::new("b")));
    assert!(!tops.has_below(Path::new("a/x/y")) && !tops.has_below(Path::new("c")));
}
