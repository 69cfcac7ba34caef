use super::*;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new(folders: &[&str]) -> Self {
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in folders {
            fs::create_dir_all(tree.at(folder)).unwrap();
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("tree").join(path)
    }

    fn access(&self) -> Access {
        Access {
            tree: self.folder.path().join("tree"),
            read_only: vec![self.at(".git"), self.at("no-such-file")],
            masked: vec![self.at("agent-config")],
            ..Access::default()
        }
    }

    /// What a command can access of our folder, and whether it may write there. `meanwhile` is called with
    /// each right as it is granted.
    fn granted(&self, access: &Access, mut meanwhile: impl FnMut(&str)) -> Vec<String> {
        let mut granted = Vec::new();
        let mut give = |file: BorrowedFd<'_>, access: BitFlags<AccessFs>| {
            let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
            if let Ok(name) = path.strip_prefix(self.folder.path()) {
                let name = name.display().to_string();
                granted.push(format!("{name} {}", access.contains(AccessFs::WriteFile)));
                meanwhile(&name);
            }
            Ok(())
        };
        grants(access, Path::new("/private"), &mut give).unwrap();
        granted.sort();
        granted
    }
}

#[test]
fn an_entry_that_is_a_link_carries_no_right_to_where_it_points() {
    let tree = Tree::new(&["src", ".git", "agent-config", "../outside"]);
    symlink(tree.at("../outside"), tree.at("planted")).unwrap();
    let granted = tree.granted(&tree.access(), |_| {});
    assert_eq!(granted, ["tree false", "tree/.git false", "tree/src true"]);
}

#[test]
fn an_entry_that_becomes_a_link_while_rights_are_given_carries_none_either() {
    let tree = Tree::new(&["one", "two", ".git", "../outside"]);
    let mut access = tree.access();
    access.read_only = vec![tree.at(".git")];
    let granted = tree.granted(&access, |name| {
        let other = match name {
            "tree/one" => "two",
            "tree/two" => "one",
            _ => return,
        };
        if fs::rename(tree.at(other), tree.at("../aside")).is_ok() {
            symlink(tree.at("../outside"), tree.at(other)).unwrap();
        }
    });
    assert_eq!(
        granted
            .iter()
            .filter(|right| right.ends_with("true"))
            .count(),
        1,
        "{granted:?}"
    );
    assert!(
        !granted.iter().any(|right| right.contains("outside")),
        "{granted:?}"
    );
}

#[test]
fn a_folder_that_goes_through_a_link_by_now_is_not_opened() {
    let tree = Tree::new(&["store/open", "../outside/open"]);
    let top = tree.at("").canonicalize().unwrap();
    assert!(open_without_links(&top.join("store/open")).is_ok());
    symlink(tree.at("../outside"), tree.at("planted")).unwrap();
    assert!(open_without_links(&top.join("planted/open")).is_err());
    assert!(open_without_links(&top.join("store/../planted")).is_err());
    let link = open_without_links(&top.join("planted")).unwrap();
    assert!(
        FileType::from_raw_mode(fstat(&link).unwrap().st_mode).is_symlink(),
        "which is given no right"
    );
}

#[test]
fn a_file_gets_no_right_of_a_folder() {
    let tree = Tree::new(&[".git"]);
    fs::File::create(tree.at("file")).unwrap();
    let mut given = Vec::new();
    let mut give = |file: BorrowedFd<'_>, access: BitFlags<AccessFs>| {
        if fstat(file).unwrap().st_mode & 0o170_000 == 0o100_000 {
            given.push(access);
        }
        Ok(())
    };
    grants(&tree.access(), Path::new("/private"), &mut give).unwrap();
    assert!(
        !given.is_empty()
            && given
                .iter()
                .all(|access| AccessFs::from_file(WANTED).contains(*access))
    );
}
