use crate::GitError;
use crate::git::tests::{ME, NONE, moved};
use crate::tests::scratch::Scratch;

/// A command that leaves a trace and copies its input to its output.
fn trap(scratch: &Scratch) -> (std::path::PathBuf, String) {
    let sprung = scratch.path().join(".git/sprung");
    let command = format!("touch {} && cat", sprung.display());
    (sprung, command)
}

#[test]
fn no_filter_of_the_repositorys_own_configuration_is_started() {
    let scratch = Scratch::with_files();
    scratch.write(".gitattributes", "* filter=trap=odd.name\n");
    scratch.commit();
    let (sprung, command) = trap(&scratch);
    for key in ["clean", "smudge", "process"] {
        scratch.git(&["config", &format!("filter.trap=odd.name.{key}"), &command]);
    }
    scratch.git(&["config", "filter.trap=odd.name.required", "true"]);
    let git = scratch.hardened(&[]);
    let (commit, head) = (git.commit_of("HEAD").unwrap().unwrap(), git.head().unwrap());
    scratch.write("kept", "two\n");
    scratch.write("new", "x\n");
    assert_eq!(git.dirty().unwrap(), ["kept", "new"]);
    // A file is not committed without the filter that keeps its secret out of the history.
    for refused in [
        git.commit_paths(&["new"], "m", ME),
        git.commit_all(NONE, "m", ME),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(
            said.contains("filters that the repository's own configuration names are not run"),
            "{said}"
        );
    }
    assert_eq!(git.commit_of("HEAD").unwrap().as_ref(), Some(&commit));
    scratch.write(".gitattributes", "new filter=trap=odd.name\n");
    git.commit_paths(&["kept", ".gitattributes"], "m", ME)
        .unwrap();
    git.roll_back(&head, &commit, &mut moved).unwrap();
    assert!(!sprung.exists());
    assert_eq!(scratch.read("kept"), "one\n");
}

#[test]
fn a_filter_is_run_where_the_users_configuration_names_it_and_the_repositorys_does_not() {
    let scratch = Scratch::with_files();
    let home = tempfile::tempdir().unwrap();
    let configuration = home.path().join(".gitconfig").display().to_string();
    let filter = |clean| format!("[filter \"loud\"]\n\tclean = {clean}\n\trequired = true\n");
    let of_user = |clean| scratch.write(&configuration, &filter(clean));
    let git = scratch.hardened(&[("HOME", home.path().to_str().unwrap())]);
    let commit = || {
        git.commit_paths(&["new"], "m", ME)
            .map_err(|refused| refused.to_string())
    };
    scratch.write(".gitattributes", "new filter=loud\n");
    scratch.commit();
    scratch.write("new", "x\n");
    of_user("tr a-z A-Z");
    scratch.git(&["config", "filter.loud.clean", "cat"]);
    assert!(
        commit()
            .unwrap_err()
            .ends_with("(git config --global) instead")
    );
    scratch.git(&["config", "--remove-section", "filter.loud"]);
    of_user("false");
    let failed = commit().unwrap_err();
    assert!(
        failed.contains("clean filter 'loud' failed") && !failed.contains("configuration"),
        "{failed}"
    );
    of_user("tr a-z A-Z");
    commit().unwrap();
    assert_eq!(scratch.git(&["show", "HEAD:new"]), "X\n");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a git of the test's own stands in front of the real one"
)]
fn nothing_is_committed_without_a_filter_that_only_the_system_names() {
    let (scratch, beside) = (Scratch::with_files(), tempfile::tempdir().unwrap());
    let at = |name: &str| beside.path().join(name).display().to_string();
    scratch.write(
        &at("system"),
        "[filter \"loud.er\"]\n\tclean = tr a-z A-Z\n",
    );
    let (here, path) = (at(""), std::env::var("PATH").unwrap());
    let words = format!(
        "#!/bin/sh\nGIT_CONFIG_SYSTEM='{}' PATH='{path}' exec git \"$@\"\n",
        at("system")
    );
    scratch.write(&at("git"), &words);
    std::fs::set_permissions(
        at("git"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let git = scratch.hardened(&[("PATH", &format!("{here}:{path}")), ("HOME", &here)]);
    scratch.write(".gitattributes", "new filter=loud.er\n");
    scratch.write("new", "x\n");
    git.commit_paths(&[".gitattributes", "kept"], "m", ME)
        .unwrap();
    let refused = git.commit_paths(&["new"], "m", ME).unwrap_err().to_string();
    assert!(
        refused.contains("filters that only the system's configuration names are not run"),
        "{refused}"
    );
    scratch.write(
        &at(".gitconfig"),
        "[filter \"loud.er\"]\n\tclean = tr a-z A-Z\n",
    );
    git.commit_paths(&["new"], "m", ME).unwrap();
    assert_eq!(scratch.git(&["show", "HEAD:new"]), "X\n");
}

#[test]
fn no_git_is_started_in_a_submodule_that_a_command_has_made() {
    let (scratch, git) = Scratch::with_git();
    let (commit, head) = (git.commit_of("HEAD").unwrap().unwrap(), git.head().unwrap());
    let (sprung, command) = trap(&scratch);
    let inner = |args: &[&str]| scratch.git(&[&["-C", "sub"], args].concat());
    scratch.write("sub/file", "one\n");
    inner(&["init", "-q"]);
    scratch.write("sub/.gitattributes", "* filter=trap\n");
    inner(&["add", "-A"]);
    inner(&["commit", "-qm", "c"]);
    inner(&["config", "filter.trap.clean", &command]);
    git.commit_all(NONE, "the nested repository is a submodule now", ME)
        .unwrap();
    scratch.write("sub/file", "two\n");
    git.dirty().unwrap();
    git.commit_all(NONE, "again", ME).unwrap();
    scratch.write("kept", "two\n");
    git.commit_paths(&["kept"], "m", ME).unwrap();
    git.commit_paths(&["sub"], "m", ME).unwrap_err();
    let _ = git.roll_back(&head, &commit, &mut moved);
    assert!(!sprung.exists());
}

#[test]
fn a_work_tree_that_the_configuration_names_is_not_touched() {
    let (scratch, other) = (Scratch::with_files(), Scratch::new());
    other.write("precious", "x");
    let git = scratch.hardened(&[]);
    let (commit, head) = (git.commit_of("HEAD").unwrap().unwrap(), git.head().unwrap());
    scratch.git(&["config", "core.worktree", other.path().to_str().unwrap()]);
    scratch.write("new", "x");
    git.roll_back(&head, &commit, &mut moved).unwrap();
    assert_eq!(other.read("precious"), "x");
    assert!(!scratch.path().join("new").exists());
}

#[test]
fn a_git_whose_repository_is_gone_or_cannot_be_read_does_not_work_on_the_one_above() {
    let scratch = Scratch::with_files();
    let commit = scratch.hardened(&[]).commit_of("HEAD").unwrap();
    for damage in ["HEAD", ""] {
        let folder = scratch.path().join("inner");
        std::fs::create_dir_all(&folder).unwrap();
        scratch.hardened(&[]).at(&folder).init().unwrap();
        let git = scratch.hardened(&[]).at(&folder);
        scratch.write("inner/file", "x\n");
        let at = folder.join(".git").join(damage);
        if at.is_dir() {
            std::fs::remove_dir_all(at).unwrap();
        } else {
            std::fs::remove_file(at).unwrap();
        }
        for refused in [
            git.commit_all(NONE, "m", ME),
            git.commit_paths(&["file"], "m", ME),
        ] {
            refused.unwrap_err();
        }
        git.roll_back(&crate::Head::Detached, "HEAD", &mut moved)
            .unwrap_err();
        assert!(folder.join("file").exists());
        assert_eq!(scratch.hardened(&[]).commit_of("HEAD").unwrap(), commit);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_submodule_that_moves_or_goes_is_committed() {
    let (scratch, git) = Scratch::with_git();
    let inner = |args: &[&str]| scratch.git(&[&["-C", "sub"], args].concat());
    scratch.write("sub/file", "one\n");
    inner(&["init", "-q"]);
    inner(&["add", "-A"]);
    inner(&["commit", "-qm", "c"]);
    git.commit_all(NONE, "a submodule", ME).unwrap();
    inner(&["commit", "-qm", "further", "--allow-empty"]);
    git.commit_paths(&["sub"], "it moves", ME).unwrap();
    assert_eq!(
        scratch.git(&["rev-parse", "HEAD:sub"]),
        inner(&["rev-parse", "HEAD"])
    );
    std::fs::remove_dir_all(scratch.path().join("sub")).unwrap();
    git.commit_all(NONE, "it goes", ME).unwrap();
    assert!(git.submodules().unwrap().is_empty());
}

#[test]
fn a_submodule_that_a_command_has_led_elsewhere_is_not_rolled_back_there() {
    let (scratch, inner) = (Scratch::with_files(), Scratch::with_files());
    scratch.add_submodule(&inner, "sub");
    scratch.commit();
    let git = scratch.hardened(&[]);
    let (commit, head) = (git.commit_of("HEAD").unwrap().unwrap(), git.head().unwrap());
    let roll_back = || {
        scratch.write("sub/kept", "two, longer\n");
        git.roll_back(&head, &commit, &mut moved)
    };
    roll_back().unwrap();
    assert_eq!(scratch.read("sub/kept"), "one\n");

    scratch.write("ignored/theirs", "");
    scratch.git_line("clone --quiet --bare .git/modules/sub ignored/git");
    scratch.git_line("config --file ignored/git/config core.bare false");
    std::fs::create_dir(scratch.path().join("ignored/git/logs")).unwrap();
    std::os::unix::fs::symlink("../../theirs", scratch.path().join("ignored/git/logs/HEAD"))
        .unwrap();
    scratch.write("sub/.git", "gitdir: ../ignored/git\n");
    let error = roll_back().unwrap_err();
    assert!(
        matches!(&error, GitError::StillDirty { paths } if *paths == ["sub"]),
        "{error}"
    );
    // Nor into a folder that it created.
    std::fs::remove_file(scratch.path().join("sub/.git")).unwrap();
    std::fs::rename(
        scratch.path().join("ignored/git"),
        scratch.path().join("sub/.git"),
    )
    .unwrap();
    assert!(matches!(
        roll_back().unwrap_err(),
        GitError::StillDirty { .. }
    ));
    scratch.write("sub-git", "gitdir: ../.git\n");
    std::fs::remove_dir_all(scratch.path().join("sub/.git")).unwrap();
    std::fs::rename(
        scratch.path().join("sub-git"),
        scratch.path().join("sub/.git"),
    )
    .unwrap();
    roll_back().unwrap_err();
    assert_eq!(scratch.read("ignored/theirs"), "");
}
