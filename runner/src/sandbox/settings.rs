//! What programs read in `/etc` and `/var/lib`: certificates, fonts, the loader's cache, the settings of interpreters and
//! compilers, and no accounts, keys or settings of servers.
//!
//! One rule decides what of it is shown: every user of the machine may read it. The mode bits say so, of each entry and of each
//! folder above it. What a command could read as root, or in a group of its user, does not count.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use code_commit_dir::{Entry, FileType};

use super::access::Access;

/// Of the root folder; a `*` at the end stands for anything. Every entry costs time at each start of a sandbox, so this is no
/// list of everything that may be shown.
const SETTINGS: [&str; 51] = [
    "etc/ImageMagick-*",
    "etc/R",
    "etc/alternatives",
    "etc/ca-certificates",
    "etc/ca-certificates.conf",
    "etc/chromium*",
    "etc/common-lisp",
    "etc/debian_version",
    "etc/debuginfod",
    "etc/dmd.conf",
    "etc/emacs",
    "etc/fonts",
    "etc/fpc*",
    "etc/gdb",
    "etc/ghostscript",
    "etc/gprofng.rc",
    "etc/groff",
    "etc/java-*",
    "etc/julia",
    "etc/ld.so.*",
    "etc/ldc2.conf",
    "etc/localtime",
    "etc/magic",
    // Not `settings.xml`, which may contain passwords.
    "etc/maven/logging",
    "etc/maven/m2.conf",
    "etc/mime.types",
    "etc/mono",
    "etc/nsswitch.conf",
    "etc/octave.conf",
    "etc/os-release",
    "etc/perl",
    "etc/php",
    "etc/pki/tls/certs",
    "etc/protocols",
    "etc/python*",
    "etc/racket",
    "etc/services",
    "etc/sgml",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/terminfo",
    "etc/texmf",
    "etc/vim",
    "etc/xml",
    "var/lib/gems",
    "var/lib/ghc",
    "var/lib/ocaml",
    "var/lib/sgml-base",
    "var/lib/texmf",
    "var/lib/vim",
    "var/lib/xml-core",
];

/// Needed to resolve host names.
const NETWORK: [&str; 4] = [
    "etc/gai.conf",
    "etc/host.conf",
    "etc/hosts",
    "etc/resolv.conf",
];

/// Files and folders. Looked up once in a process: no command can change them.
pub(super) fn shown(access: &Access) -> &'static [PathBuf] {
    static KNOWN: [OnceLock<Vec<PathBuf>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [without, with] = &KNOWN;
    let (known, network) = if access.network {
        (with, &NETWORK[..])
    } else {
        (without, &[][..])
    };
    let names = SETTINGS.iter().chain(network);
    known.get_or_init(|| {
        names
            .flat_map(|name| named(name))
            .flat_map(parts_for_all)
            .collect()
    })
}

fn named(name: &str) -> Vec<PathBuf> {
    let path = Path::new("/").join(name);
    let (Some(start), Some(folder)) = (bytes(&path).strip_suffix(b"*"), path.parent()) else {
        return vec![path];
    };
    let paths = entries(folder).map(|entry| entry.path());
    paths
        .filter(|path| bytes(path).starts_with(start))
        .collect()
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn entries(folder: &Path) -> impl Iterator<Item = Entry> + use<> {
    let entries = code_commit_dir::list(folder).into_iter().flatten();
    entries.flatten()
}

/// The path or, if not all of it is for everybody, the entries that are.
fn parts_for_all(path: PathBuf) -> Vec<PathBuf> {
    let Ok(real) = path.canonicalize() else {
        return Vec::new();
    };
    let is_passed = |folder: &Path| {
        folder
            .metadata()
            .is_ok_and(|found| found.mode() & 0o001 != 0)
    };
    if !real.ancestors().skip(1).all(is_passed) || is_secret(&path) {
        Vec::new()
    } else if is_for_all(&real) {
        vec![path]
    } else if path.is_symlink() {
        Vec::new()
    } else {
        let parts = entries(&path).map(|entry| entry.path());
        parts.flat_map(parts_for_all).collect()
    }
}

/// Whether everybody may read it, and all that is in it. What a link in it leads to is judged where that is.
fn is_for_all(path: &Path) -> bool {
    let Ok(found) = path.symlink_metadata() else {
        return false;
    };
    let needed = if found.is_dir() { 0o005 } else { 0o004 };
    let is_open = found.mode() & needed == needed && !is_secret(path);
    // Most entries are links, of certificates and alternatives: their type is known without a look at each.
    let is_link = |entry: &Entry| entry.file_type().is_ok_and(FileType::is_symlink);
    let is_part_open = |entry: Entry| is_link(&entry) || is_for_all(&entry.path());
    is_open && (!found.is_dir() || entries(path).all(is_part_open))
}

/// Some keys are readable for everybody by mistake. Most files named `.pem` contain certificates.
fn is_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let has_key = || {
        let text = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("PRIVATE KEY")
    };
    let is_pem = path.extension().is_some_and(|end| end == "pem");
    code_commit_names::is_secret(&name.to_ascii_lowercase()) && (!is_pem || has_key())
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "the test writes files of its own"
    )]
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// What is shown of a folder with these files, and links from the first name to the second.
    fn shown_of(
        files: &[(&str, u32)],
        links: &[(&str, &str)],
        folders: &[(&str, u32)],
    ) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("etc");
        let at = |name: &str| top.join(name);
        let may = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        may(folder.path(), 0o755);
        for (name, mode) in files {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            let is_key = name.ends_with("key.pem");
            fs::write(at(name), if is_key { "PRIVATE KEY" } else { "" }).unwrap();
            may(&at(name), *mode);
        }
        links
            .iter()
            .for_each(|(link, to)| symlink(to, at(link)).unwrap());
        folders
            .iter()
            .for_each(|(name, mode)| may(&at(name), *mode));
        let mut shown: Vec<String> = parts_for_all(top.clone())
            .iter()
            .map(|path| {
                path.strip_prefix(folder.path())
                    .unwrap()
                    .display()
                    .to_string()
            })
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_folder_that_everybody_may_read_is_shown_whole() {
        assert_eq!(
            shown_of(
                &[("a", 0o644), ("b/c", 0o444)],
                &[("d", "/nonexistent")],
                &[]
            ),
            ["etc"]
        );
    }

    #[test]
    fn of_a_folder_that_has_more_every_entry_is_judged() {
        let files = [
            ("shadow", 0o640),
            ("mine", 0o600),
            ("open", 0o644),
            ("group/open", 0o644),
            ("listed/open", 0o644),
            ("whole/open", 0o644),
            ("certs/host.pem", 0o644),
            ("certs/host.key", 0o644),
            ("certs/key.pem", 0o644),
        ];
        let links = [
            ("to-shadow", "shadow"),
            ("to-group", "group/open"),
            ("to-open", "whole/open"),
            ("circle", "."),
        ];
        let folders = [("group", 0o750), ("listed", 0o744)];
        assert_eq!(
            shown_of(&files, &links, &folders),
            ["etc/certs/host.pem", "etc/open", "etc/to-open", "etc/whole"]
        );
    }

    #[test]
    fn nothing_is_shown_below_a_folder_that_not_everybody_may_enter() {
        assert_eq!(shown_of(&[("a", 0o644)], &[], &[(".", 0o754)]), [""; 0]);
        assert!(
            parts_for_all("/etc/shadow".into()).is_empty()
                && parts_for_all("/etc/none".into()).is_empty()
        );
        assert_eq!(
            parts_for_all("/etc/passwd".into()),
            [Path::new("/etc/passwd")]
        );
    }
}
