//! What the system's packages for development have outside of `/usr`: the settings of PHP, R or Perl in `/etc`, the
//! package databases of GHC or OCaml in `/var/lib`. Their own lists say so (`dpkg-query --listfiles`).

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use code_commit_dir::{Links, read};
use rustix::process::geteuid;

use super::access::Access;

/// The sections of Debian's archive (policy, 2.4) with compilers, interpreters, browsers, and what makes documents;
/// none with servers or administration.
const SECTIONS: [&str; 26] = [
    "cli-mono",
    "devel",
    "editors",
    "electronics",
    "embedded",
    "gnu-r",
    "gnustep",
    "golang",
    "graphics",
    "haskell",
    "interpreters",
    "java",
    "javascript",
    "libdevel",
    "lisp",
    "math",
    "ocaml",
    "perl",
    "php",
    "python",
    "ruby",
    "rust",
    "science",
    "tex",
    "text",
    "web",
];
const PLACES: [&str; 2] = ["/etc", "/var/lib"];
/// Shared with packages that serve or administer the host, or shown in part only.
const APART: [&str; 13] = [
    "/etc/apache2",
    "/etc/apt",
    "/etc/cron.d",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/default",
    "/etc/init.d",
    "/etc/lighttpd",
    "/etc/logrotate.d",
    "/etc/maven",
    "/etc/ssl",
    "/etc/systemd",
    "/var/lib/systemd",
];
/// Longer files are none of dpkg's.
const MOST_BYTES: u64 = 64 << 20;
/// As root, a folder with more entries is not looked through, and not shown.
const MOST_ENTRIES: usize = 5000;
/// The lists have a few megabytes.
const REMEMBERED: &str = "packages";

/// Files and folders that every user of the machine may read. Looked up once in a process.
pub(super) fn shown(access: &Access) -> &'static [PathBuf] {
    static KNOWN: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let remembered = || access.memory.as_ref().map(|memory| memory.join(REMEMBERED));
    KNOWN.get_or_init(|| {
        // Whoever forges what is remembered is shown nothing that others may not see.
        let mut all = all(Path::new("/var/lib/dpkg"), remembered().as_deref());
        all.retain(|path| is_place(path) && is_for_all(path));
        all
    })
}

/// What the packages list, from memory if nothing was installed since.
fn all(dpkg: &Path, remembered: Option<&Path>) -> Vec<PathBuf> {
    let status = dpkg.join("status");
    let Ok(found) = fs::metadata(&status) else {
        return Vec::new();
    };
    let version = format!(
        "{} {} {}.{}",
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec()
    );
    let known = remembered.and_then(text);
    if let Some((first, rest)) = known.as_deref().and_then(|text| text.split_once('\n'))
        && first == version
    {
        return rest.lines().map(PathBuf::from).collect();
    }
    let listed = listed(dpkg, &text(&status).unwrap_or_default());
    let lines: String = listed
        .iter()
        .map(|path| format!("\n{}", path.display()))
        .collect();
    if let Some(file) = remembered {
        // Otherwise the next command looks again.
        let _ = code_commit_dir::replace_with(file, |file| {
            file.write_all(format!("{version}{lines}").as_bytes())
        });
    }
    listed.into_iter().collect()
}

/// What is directly in one of the places, by the lists of the packages in those sections.
fn listed(dpkg: &Path, status: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for package in status.split("\n\n") {
        let field = |name: &str| {
            package
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let section = field("Section:")
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let Some(name) = field("Package:").filter(|_| SECTIONS.contains(&section)) else {
            continue;
        };
        let of_machine = field("Architecture:").map(|machine| format!("{name}:{machine}"));
        let names = [Some(name.to_owned()), of_machine];
        let lists = names
            .iter()
            .flatten()
            .map(|name| dpkg.join("info").join(format!("{name}.list")));
        for list in lists.filter_map(|list| text(&list)) {
            found.extend(list.lines().filter_map(|line| {
                Some(Path::new(line))
                    .filter(|path| is_place(path))
                    .map(Path::to_owned)
            }));
        }
    }
    found
}

fn text(file: &Path) -> Option<String> {
    String::from_utf8(read(file, MOST_BYTES, Links::Refused).ok()??).ok()
}

fn is_place(path: &Path) -> bool {
    let is_direct = path.file_name().is_some()
        && path
            .parent()
            .is_some_and(|parent| PLACES.iter().any(|place| parent == Path::new(place)));
    is_direct && !APART.iter().any(|apart| path == Path::new(apart))
}

/// Whether it belongs to root, and everybody may read it. As root, a command could read what others may not: then that
/// holds for all of it.
fn is_for_all(path: &Path) -> bool {
    let mut entries = 0;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            return false;
        };
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase();
        let needed = if found.is_dir() { 0o005 } else { 0o004 };
        entries += 1;
        let is_open = found.uid() == 0
            && found.mode() & needed == needed
            && !code_commit_names::is_secret(&name);
        if !is_open || entries > MOST_ENTRIES {
            return false;
        }
        if found.is_dir() && geteuid().is_root() {
            open.extend(
                code_commit_dir::list(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
    true
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test writes files of its own"
)]
mod tests {
    use super::*;

    #[test]
    fn what_packages_for_development_list_is_found_and_remembered() {
        let dpkg = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dpkg.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "status",
            "Package: php-cli\nSection: php\nArchitecture: amd64\n\nPackage: ghc\nSection: contrib/haskell\n\n\
             Package: openssh-client\nSection: net\nArchitecture: amd64\n\n",
        );
        write(
            "info/php-cli:amd64.list",
            "/.\n/etc\n/etc/php\n/etc/php/8.2\n/etc/init.d\n/usr/bin/php\n",
        );
        write(
            "info/ghc.list",
            "/var/lib/ghc\n/var/lib/ghc/package.conf.d\n",
        );
        write("info/openssh-client.list", "/etc/ssh\n");
        let file = dpkg.path().join("remembered");
        let expected = ["/etc/php", "/var/lib/ghc"].map(PathBuf::from);
        assert_eq!(all(dpkg.path(), Some(&file)), expected);
        write("info/ghc.list", "");
        assert_eq!(all(dpkg.path(), Some(&file)), expected, "remembered");
        write("status", "Package: ghc\nSection: haskell\n");
        assert!(
            all(dpkg.path(), Some(&file)).is_empty(),
            "something was removed"
        );
        assert!(
            all(Path::new("/nonexistent"), None).is_empty(),
            "no dpkg here"
        );
    }

    #[test]
    fn what_others_may_not_read_is_not_shown() {
        assert!(is_for_all(Path::new("/etc/passwd")) && !is_for_all(Path::new("/etc/shadow")));
        assert!(!is_for_all(Path::new("/etc/nonexistent")));
        assert!(is_place(Path::new("/etc/php")) && is_place(Path::new("/var/lib/ghc")));
        for other in [
            "/etc",
            "/etc/ssl",
            "/etc/php/8.2",
            "/var/lib",
            "/home/x",
            "/etc/../home",
            "/etc/..",
        ] {
            assert!(!is_place(Path::new(other)), "{other}");
        }
    }
}
