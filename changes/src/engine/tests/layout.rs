//! Repositories in the tree that results.

use super::*;

const HEAD: &str = "ref: refs/heads/main\n";
const EVIL: &str = "[core]\n\tfsmonitor = evil\n\tworktree = ..\n";
const PLAIN: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://host.invalid/x\n";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The paths that are there, of these.
fn there<'p>(project: &Project, paths: &[&'p str]) -> Vec<&'p str> {
    let is_there = |path: &&&str| project.root().join(path).symlink_metadata().is_ok();
    paths.iter().filter(is_there).copied().collect()
}

#[test]
fn a_bare_repository_is_not_completed_in_a_folder_that_exists_whoever_made_its_parts() {
    for place in [Where::Tree, Where::View] {
        let files = [
            ("data/page", "p\n"),
            ("parts/config", EVIL),
            ("parts/refs/x", "x"),
            ("parts/HEAD", HEAD),
        ];
        let mut project = Project::new(&files).works(place);
        let accounted = project.command(|root| {
            write(root, "data/HEAD", HEAD);
            write(root, "data/config", EVIL);
            for path in ["data/objects", "data/refs", "parts/objects"] {
                fs::create_dir(root.join(path)).unwrap();
            }
            write(root, "data/new", "new");
        });
        let paths = [
            "data/HEAD",
            "data/config",
            "data/objects",
            "data/refs",
            "data/new",
            "parts/objects",
        ];
        assert_eq!(
            there(&project, &paths),
            ["data/new"],
            "{place:?}: {accounted:?}"
        );
        assert_eq!(accounted.changes.len(), 1, "{place:?}: {accounted:?}");
    }
}

#[test]
fn an_ignored_folder_called_objects_hides_no_repository() {
    for place in [Where::Tree, Where::View] {
        let files = [(".gitignore", "/objects/\n"), ("objects/page", "p\n")];
        let mut project = Project::new(&files).works(place);
        project.command(|root| {
            for (part, text) in [
                ("HEAD", HEAD),
                ("config", EVIL),
                ("objects/x", "x"),
                ("refs/x", "x"),
            ] {
                write(root, &format!("objects/x/.git/{part}"), text);
            }
        });
        assert_eq!(
            there(&project, &["objects/x/.git/config"]),
            [""; 0],
            "{place:?}"
        );
    }
}

fn in_ignored_folders(root: &Path) {
    for (repository, config) in [("plain", PLAIN), ("evil", EVIL)] {
        for part in ["HEAD", "objects/x", "refs/x"] {
            write(root, &format!("ignored/{repository}/.git/{part}"), HEAD);
        }
        write(root, &format!("ignored/{repository}/.git/config"), config);
    }
    write(root, "ignored/old/.git/config", EVIL);
    write(root, "ignored/old/.git/hooks/post-index-change", "evil");
    write(root, "ignored/product", "product");
}

const IGNORED: [(&str, &str); 5] = [
    (".gitignore", "/ignored/\n"),
    ("ignored/old/.git/HEAD", HEAD),
    ("ignored/old/.git/config", PLAIN),
    ("ignored/old/.git/objects/x", ""),
    ("ignored/old/.git/refs/x", ""),
];

fn check_ignored(project: &Project, place: Where) {
    let paths = [
        "plain/.git/config",
        "evil/.git/config",
        "old/.git/hooks/post-index-change",
        "product",
    ];
    let paths = paths.map(|path| format!("ignored/{path}"));
    let paths = paths.each_ref().map(String::as_str);
    let stays = ["ignored/plain/.git/config", "ignored/product"];
    assert_eq!(there(project, &paths), stays, "{place:?}");
    let old = project.read("ignored/old/.git/config");
    assert_eq!(old, PLAIN, "{place:?}");
}

#[test]
fn a_repository_that_git_ignores_keeps_only_a_configuration_that_starts_nothing() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&IGNORED).works(place);
        let accounted = project.command(in_ignored_folders);
        check_ignored(&project, place);
        assert_eq!(accounted.changes, [], "{place:?}");
    }
}

#[test]
fn nor_does_it_keep_more_after_an_attempt_that_failed() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&IGNORED).works(place);
        project.begin(in_ignored_folders);
        let guard = project.guard();
        let run = project.run.clone();
        project
            .account
            .reset(&guard, &run, &mut crate::backup::Backup::of(&run))
            .unwrap();
        check_ignored(&project, place);
    }
}

#[test]
fn an_ignored_repository_that_a_command_removes_stays_removed() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&IGNORED).works(place);
        let accounted =
            project.command(|root| fs::remove_dir_all(root.join("ignored/old")).unwrap());
        assert_eq!(
            there(&project, &["ignored/old"]),
            [""; 0],
            "{place:?}: {accounted:?}"
        );
    }
}
