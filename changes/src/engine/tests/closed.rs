//! Folders that a command has closed: their owner may not list them, or not look at what is in them. Root may do all of it, so a
//! thread drops its privileges.

use super::*;

fn as_a_user(test: fn()) {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let nobody = rustix::fs::Uid::from_raw(65534);
            let is_root = rustix::process::geteuid().is_root();
            if is_root && rustix::thread::set_thread_res_uid(nobody, nobody, nobody).is_err() {
                return eprintln!(
                    "SKIPPED: modes of folders because this user cannot become another"
                );
            }
            if tempfile::tempdir().is_err() {
                return eprintln!(
                    "SKIPPED: modes of folders because not everybody may write to {:?}",
                    std::env::temp_dir()
                );
            }
            test();
        });
        worker.join().unwrap();
    });
}

const MODES: [u32; 4] = [0o000, 0o300, 0o400, 0o644];

#[test]
fn what_is_in_a_closed_folder_is_not_brought_in() {
    as_a_user(|| {
        for (place, mode) in [Where::Tree, Where::View]
            .into_iter()
            .flat_map(|place| MODES.map(|mode| (place, mode)))
        {
            let mut project = Project::new(&[("a", "a\n"), ("there/b", "b\n")]).works(place);
            let before = project.all();
            let accounted = project.command(|root| {
                for folder in ["new/deep", "there/deep"] {
                    fs::create_dir_all(root.join(folder)).unwrap();
                    fs::write(root.join(folder).join("x"), "x\n").unwrap();
                    by_hand::close(&root.join(folder), mode);
                }
            });
            insta::allow_duplicates! {
                insta::assert_snapshot!(shown(&accounted), @r"
                put back new/deep
                put back there/deep
                ");
            }
            let mut now = project.all();
            now.remove(Path::new("new"));
            assert_eq!(now, before, "{place:?} {mode:o}");
        }
    });
}

#[test]
fn a_folder_that_a_command_closes_is_open_again() {
    as_a_user(|| {
        for (place, mode) in [Where::Tree, Where::View]
            .into_iter()
            .flat_map(|place| MODES.map(|mode| (place, mode)))
        {
            for closed in ["there", ""] {
                let mut project = Project::new(&[("a", "a\n"), ("there/b", "b\n")]).works(place);
                let before = project.all();
                let accounted = project.command(|root| by_hand::close(&root.join(closed), mode));
                let expected: &[&str] = if closed.is_empty() { &[] } else { &["there"] };
                assert_eq!(accounted.put_back, expected, "{place:?} {mode:o}");
                assert_eq!(project.all(), before, "{place:?} {mode:o}");
            }
        }
    });
}

#[test]
fn closed_folders_among_ignored_files_come_into_the_tree() {
    as_a_user(|| {
        for mode in MODES {
            let mut project =
                Project::new(&[(".gitignore", "out/\n"), ("a", "a\n")]).works(Where::View);
            let accounted = project.command(|root| {
                fs::create_dir_all(root.join("out/deep")).unwrap();
                fs::write(root.join("out/deep/x"), "x\n").unwrap();
                by_hand::close(&root.join("out/deep"), mode);
            });
            assert_eq!(shown(&accounted), "");
            let deep = project.root().join("out/deep");
            assert_eq!(fs::metadata(&deep).unwrap().mode() & 0o777, mode);
            by_hand::close(&deep, 0o700);
            assert_eq!(fs::read_to_string(deep.join("x")).unwrap(), "x\n");
        }
    });
}

#[test]
fn a_sealed_file_in_a_closed_folder_counts_as_changed() {
    as_a_user(|| {
        for mode in MODES {
            let mut project = Project::new(&[("deep/sealed", "old\n")]).works(Where::View);
            let guard = project.guard();
            project.begin(|root| by_hand::close(&root.join("deep"), mode));
            let run = project.run.clone();
            project.account.sealed = vec!["deep/sealed".into()];
            let mut broken = || project.account.restore_sealed(&guard, &run).unwrap().0;
            assert_eq!(broken(), ["deep/sealed"], "{mode:o}");
            assert!(broken().is_empty());
        }
    });
}

#[test]
fn a_sealed_file_in_a_closed_folder_of_the_tree_is_restored() {
    as_a_user(|| {
        for (mode, is_removed) in MODES
            .into_iter()
            .flat_map(|mode| [(mode, false), (mode, true)])
        {
            let mut project = Project::new(&[("deep/er/sealed", "old\n")]);
            project.account.sealed = vec!["deep/er/sealed".into()];
            let (before, run) = (project.all(), project.run.clone());
            let guard = project.guard();
            project.begin(|root| {
                if is_removed {
                    fs::remove_file(root.join("deep/er/sealed")).unwrap();
                }
                by_hand::close(&root.join("deep/er"), mode);
                by_hand::close(&root.join("deep"), mode);
            });
            let mut broken = || project.account.restore_sealed(&guard, &run).unwrap().0;
            assert_eq!(broken(), ["deep/er/sealed"], "{mode:o} {is_removed}");
            assert!(broken().is_empty());
            project
                .account
                .reset(&guard, &run, &mut Backup::of(&run))
                .unwrap();
            assert_eq!(project.all(), before, "{mode:o} {is_removed}");
        }
    });
}
