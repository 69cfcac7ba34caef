//! What git ignores: products may be replaced, and whatever else was there is not lost.

use super::touched::{attic, texts};
use super::*;

fn named(accounted: &Accounted) -> Vec<&str> {
    let warnings = accounted.warnings.iter();
    warnings.map(|warning| &*warning.message).collect()
}

#[test]
fn what_is_no_folder_comes_back_where_a_command_puts_a_folder_that_git_ignores() {
    for place in [Where::Tree, Where::View] {
        for kind in ["untracked", "tracked", "changed", "symlink"] {
            let files = [(".gitignore", "build/\n"), ("a", "a\n")];
            let mut project = Project::new(&files).works(place);
            let build = project.root().join("build");
            if kind == "symlink" {
                symlink("a", &build).unwrap();
            } else {
                project.write("build", "mine\n");
            }
            if kind == "tracked" || kind == "changed" {
                ignoring::git(&project.root(), &["add", "."]);
            }
            if kind == "changed" {
                project.write("build", "mine, changed\n");
            }
            let before = project.all();
            let accounted = project.command(|root| {
                fs::remove_file(root.join("build")).unwrap();
                fs::create_dir(root.join("build")).unwrap();
                fs::write(root.join("build/x"), "x\n").unwrap();
                fs::write(root.join("build/x.o"), "x\n").unwrap();
            });
            assert_eq!(shown(&accounted), "put back build", "{place:?} {kind}");
            assert_eq!(project.all(), before, "{place:?} {kind}");
        }
    }
}

#[test]
fn a_file_where_the_folder_of_products_would_be_comes_back() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "a\n"), ("made", "mine\n")]).works(place);
        project.account.scope.products = vec!["made".into()];
        project.command(|root| {
            fs::remove_file(root.join("made")).unwrap();
            fs::create_dir(root.join("made")).unwrap();
            fs::write(root.join("made/x"), "x\n").unwrap();
        });
        let now = fs::read_to_string(project.root().join("made"));
        assert_eq!(now.ok().as_deref(), Some("mine\n"), "{place:?}");
    }
}

#[test]
fn a_file_in_the_place_of_an_ignored_folder_is_a_change_like_any_other() {
    for place in [Where::Tree, Where::View] {
        let files = [(".gitignore", "build/\n"), ("build/x", "product\n")];
        let mut project = Project::new(&files).works(place);
        let accounted = project.command(|root| {
            fs::remove_dir_all(root.join("build")).unwrap();
            fs::write(root.join("build"), "built\n").unwrap();
        });
        assert_eq!(shown(&accounted), "A build", "{place:?}");
        assert_eq!(attic(&project.run), texts([]), "{place:?}");
    }
}

const RULES: &str = "\
.env
key.*
data
*.o
out/
.tool/*
";

/// Files that git ignores by their own names, and products.
fn ignored() -> Vec<(&'static str, &'static str)> {
    vec![
        (".gitignore", RULES),
        (".env", "TOKEN=1\n"),
        ("key.pem", "key\n"),
        ("data", "rows\n"),
        ("same.o", "same\n"),
        ("conf/a", "a\n"),
        ("conf/key.txt", "key\n"),
        ("out/.env", "product\n"),
        ("out/deep/x.o", "product\n"),
        (
            ".tool/CACHEDIR.TAG",
            "Signature: 8a477f597d28d172789f06886806bc55\n",
        ),
        (".tool/state", "product\n"),
    ]
}

#[test]
fn an_ignored_file_that_is_no_product_is_kept_and_named_when_a_command_takes_it_away() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&ignored()).works(place);
        symlink("nowhere", project.root().join("key.link")).unwrap();
        let accounted = project.command(|root| {
            fs::remove_file(root.join(".env")).unwrap();
            fs::remove_file(root.join("key.pem")).unwrap();
            symlink("conf", root.join("key.pem")).unwrap();
            fs::remove_file(root.join("key.link")).unwrap();
            fs::remove_file(root.join("data")).unwrap();
            fs::create_dir(root.join("data")).unwrap();
            fs::write(root.join("data/rows"), "none\n").unwrap();
            fs::write(root.join("same.o"), "same\n").unwrap();
            fs::write(root.join("new.o"), "new\n").unwrap();
            fs::remove_dir_all(root.join("conf")).unwrap();
            fs::write(root.join("out/.env"), "built\n").unwrap();
            fs::remove_dir_all(root.join("out/deep")).unwrap();
            fs::write(root.join(".tool/state"), "built\n").unwrap();
        });
        assert_eq!(shown(&accounted), "D conf/a", "{place:?}");
        let kept = attic(&project.run);
        let expected = [
            (".env", "TOKEN=1\n"),
            ("conf/key.txt", "key\n"),
            ("data", "rows\n"),
            ("key.link", "-> nowhere"),
            ("key.pem", "key\n"),
        ];
        assert_eq!(kept, texts(expected), "{place:?}");
        let [message] = named(&accounted)[..] else {
            panic!("{place:?} {accounted:?}")
        };
        for path in [".env", "conf/key.txt", "data", "key.pem", "key.link"] {
            assert!(message.contains(path), "{place:?} {path}: {message}");
        }
        let root = project.root();
        assert_eq!(
            fs::read_to_string(root.join("data/rows")).unwrap(),
            "none\n"
        );
        assert!(!root.join(".env").exists(), "nothing puts it back");
    }
}

#[test]
fn what_an_earlier_command_wrote_at_an_ignored_path_is_not_kept() {
    for place in [Where::Tree, Where::View] {
        let files = [
            (".gitignore", "*.o\n"),
            ("old.o", "mine\n"),
            ("later.o", "mine\n"),
        ];
        let mut project = Project::new(&files).works(place);
        let build = |text: &'static str| {
            move |root: &Path| {
                fs::write(root.join("old.o"), text).unwrap();
                fs::write(root.join("new.o"), text).unwrap();
            }
        };
        let first = project.command(build("one\n"));
        assert_eq!(named(&first).len(), 1, "{place:?} {first:?}");
        project.account.recorded(&project.run).unwrap();
        let second = project.command(build("other\n"));
        assert_eq!(second.warnings, [], "{place:?}");
        // What somebody else wrote since is.
        project.account.recorded(&project.run).unwrap();
        project.write("new.o", "theirs\n");
        let third = project.command(build("the last\n"));
        assert!(named(&third)[0].contains("new.o"), "{place:?} {third:?}");
        let kept: Vec<String> = attic(&project.run).into_values().collect();
        assert_eq!(kept, ["theirs\n", "mine\n"], "{place:?}");
    }
}

#[test]
fn after_a_kill_an_ignored_file_that_is_no_product_is_as_it_was() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&ignored()).works(place);
        let before = project.all();
        project.begin(|root| {
            fs::remove_file(root.join(".env")).unwrap();
            fs::remove_file(root.join("data")).unwrap();
            fs::create_dir(root.join("data")).unwrap();
            fs::write(root.join("key.pem"), "other\n").unwrap();
        });
        project.settle();
        assert_eq!(project.all(), before, "{place:?}");
    }
}

#[test]
fn a_command_whose_changes_are_not_wanted_still_loses_no_ignored_file() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&ignored()).works(place);
        project.account.scope.keeps_nothing = true;
        let accounted = project.command(|root| {
            fs::remove_file(root.join(".env")).unwrap();
            fs::write(root.join("conf/a"), "other\n").unwrap();
            fs::write(root.join("new.o"), "new\n").unwrap();
        });
        let kept = attic(&project.run);
        let env = kept.get(Path::new(".env")).map(String::as_str);
        assert_eq!(env, Some("TOKEN=1\n"), "{place:?}");
        assert!(named(&accounted)[0].contains(".env"), "{accounted:?}");
        let root = project.root();
        assert_eq!(fs::read_to_string(root.join("conf/a")).unwrap(), "a\n");
        assert!(root.join("new.o").exists(), "{place:?}");
    }
}

#[test]
fn a_command_that_only_touched_an_ignored_file_did_not_write_it() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&ignored()).works(place);
        project.command(|root| fs::write(root.join(".env"), "TOKEN=1\n").unwrap());
        project.account.recorded(&project.run).unwrap();
        project.command(|root| fs::remove_file(root.join(".env")).unwrap());
        let kept = attic(&project.run);
        assert_eq!(kept, texts([(".env", "TOKEN=1\n")]), "{place:?}");
    }
}

/// What git would run is watched in an ignored folder, too, which does not make the folder one that is watched.
#[test]
fn an_ignored_folder_with_a_repository_stays_in_place_when_a_killed_command_is_taken_back() {
    let mut project = Project::new(&[(".gitignore", "/deps/\n"), ("a", "old\n")]);
    for (path, text) in [
        ("deps/x/HEAD", "ref: refs/heads/main\n"),
        ("deps/x/config", "[core]\n"),
        ("deps/x/objects/1", ""),
        ("deps/x/refs/1", ""),
        ("deps/x/hooks/update.sample", ""),
        ("deps/source", "source\n"),
    ] {
        project.write(path, text);
    }
    project.begin(|root| {
        fs::write(root.join("a"), "built\n").unwrap();
        fs::write(root.join("deps/x/hooks/post-checkout"), "true\n").unwrap();
    });
    assert_eq!(project.settle(), ["a", "deps/x/hooks/post-checkout"]);
    for path in ["deps/source", "deps/x/HEAD", "deps/x/hooks/update.sample"] {
        assert!(project.root().join(path).is_file(), "{path}");
    }
}
