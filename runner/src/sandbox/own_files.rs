//! Files of the sandbox's own: accounts, names of hosts, configurations of git without secrets.
//!
//! Those configurations are the project's, and of what cargo and Go have fetched with git. Commands see them without the
//! secrets, because git does not work without a configuration.

use std::fs;
use std::path::{Path, PathBuf};

use super::access::Access;
use crate::proxy::HOST_NAME;

/// Keys whose values are secrets, in lower case.
const SECRETS: [&str; 5] = ["extraheader", "pass", "password", "smtppass", "token"];
/// A larger configuration is not looked into, and hidden whole.
const MOST_BYTES: u64 = 1 << 20;
/// Of one place.
const MOST_REPOSITORIES: usize = 200;

/// Their places and contents.
pub(super) fn files(access: &Access) -> Vec<(PathBuf, String)> {
    let files = [
        ("/etc/passwd", accounts(access)),
        ("/etc/group", groups()),
        ("/etc/hosts", hosts(access)),
    ];
    let name_server = ("/etc/resolv.conf", "nameserver 127.0.0.1\n".to_owned());
    let files = files
        .into_iter()
        .chain((!access.network).then_some(name_server))
        .map(|(path, content)| (path.into(), content));
    let held = access.held(&access.read_only);
    files.chain(without_secrets(access, &held)).collect()
}

/// Programs look up their own account: just that one, and `nobody`.
fn accounts(access: &Access) -> String {
    let (user, group) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let home = access
        .hidden_home()
        .unwrap_or_else(|| Path::new("/tmp").to_owned());
    format!(
        "user:x:{user}:{group}::{}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
        home.display()
    )
}

fn groups() -> String {
    format!(
        "user:x:{}:\nnogroup:x:65534:\n",
        rustix::process::getgid().as_raw()
    )
}

/// Tests of real projects connect to themselves by these names. With the network on, the names of the
/// host are known as well.
fn hosts(access: &Access) -> String {
    let own =
        format!("127.0.0.1 localhost {HOST_NAME}\n::1 localhost ip6-localhost ip6-loopback\n");
    let of_host = if access.network {
        fs::read_to_string("/etc/hosts").unwrap_or_default()
    } else {
        String::new()
    };
    own + &of_host
}

/// Those with secrets, and what is left of each without them. `held` is what is read-only.
pub(super) fn without_secrets(access: &Access, held: &[PathBuf]) -> Vec<(PathBuf, String)> {
    let below = |folder: PathBuf| {
        let entries = code_commit_dir::list(folder)
            .into_iter()
            .flatten()
            .flatten()
            .take(MOST_REPOSITORIES);
        entries.map(|entry| entry.path())
    };
    let home = access.hidden_home();
    let repositories = repositories(access, held);
    let of_submodules: Vec<PathBuf> = repositories
        .iter()
        .flat_map(|folder| below(folder.join("modules")))
        .collect();
    let of_cargo = access
        .cargo_home
        .iter()
        .flat_map(|home| below(home.join("git/db")));
    // They are shown in layers only.
    let of_go = home
        .iter()
        .filter(|_| access.caches.is_some())
        .flat_map(|home| below(home.join("go/pkg/mod/cache/vcs")));
    let folders = repositories
        .into_iter()
        .chain(of_submodules)
        .chain(of_cargo)
        .chain(of_go);
    let files =
        folders.flat_map(|folder| ["config", "config.worktree"].map(|name| folder.join(name)));
    files
        .filter_map(|file| Some((without(&file)?, file)))
        .map(|(rest, file)| (file, rest))
        .collect()
}

/// The git directories that a command sees, whatever their names: in the tree they are read-only. Of one around the
/// tree only the parts are shown.
pub(super) fn repositories(access: &Access, held: &[PathBuf]) -> Vec<PathBuf> {
    let shown = access.readable.iter().map(|path| match path.parent() {
        Some(around) if path.ends_with("config") => around.to_owned(),
        _ => path.clone(),
    });
    let mut all: Vec<PathBuf> = shown.chain(held.iter().cloned()).collect();
    all.retain(|folder| folder.join("HEAD").symlink_metadata().is_ok());
    all
}

/// `None` for one without secrets.
fn without(file: &Path) -> Option<String> {
    let stat = file.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    if stat.len() > MOST_BYTES {
        return Some(String::new());
    }
    let text = String::from_utf8_lossy(&fs::read(file).ok()?).into_owned();
    let rest = strip(&text);
    (rest != text).then_some(rest)
}

/// Lines with secret values go, and what a URL has before its host.
fn strip(text: &str) -> String {
    let (mut rest, mut is_secret, mut goes_on) = (String::new(), false, false);
    for line in text.split_inclusive('\n') {
        if !goes_on {
            let key = line
                .split('=')
                .next()
                .unwrap_or_default()
                .rsplit(']')
                .next()
                .unwrap_or_default();
            is_secret = SECRETS.contains(&key.trim().to_ascii_lowercase().as_str());
        }
        goes_on = line.trim_end_matches(['\n', '\r']).ends_with('\\');
        if !is_secret {
            rest.push_str(&without_users(line));
        } else if let Some((section, _)) = line.rsplit_once(']') {
            rest.push_str(&format!("{section}]\n"));
        }
    }
    rest
}

/// Names of users and passwords in addresses of the web; ssh has no secret there.
fn without_users(line: &str) -> String {
    let mut parts = line.split("://");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_web = ["http", "https"]
            .iter()
            .any(|scheme| rest.to_ascii_lowercase().ends_with(scheme));
        let end = part
            .find(['/', '"', '\'', ' ', '\t', '\n'])
            .unwrap_or(part.len());
        let (authority, path) = part.split_at_checked(end).unwrap_or((part, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        rest.extend(["://", if is_web { host } else { authority }, path]);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_everything_else_stays() {
        let text = "[core]\n\trepositoryformatversion = 1\n[extensions] objectformat = sha256\n\
            [remote \"origin\"]\n\turl = https://me:s3cret@host/x.git\n\tpushurl = ssh://git@host/x.git\n\
            [http \"https://host/\"]\n\textraHeader = AUTHORIZATION: basic s3cret\n\tsslVerify = true\n\
            [http] extraheader = one \\\n  s3cret\n[url \"https://s3cret@host/\"]\n\tinsteadOf = \"git@host:\"\n\
            [sendemail]\n\tsmtpPass = s3cret\n";
        insta::assert_snapshot!(strip(text), @r#"
        [core]
        	repositoryformatversion = 1
        [extensions] objectformat = sha256
        [remote "origin"]
        	url = https://host/x.git
        	pushurl = ssh://git@host/x.git
        [http "https://host/"]
        	sslVerify = true
        [http]
        [url "https://host/"]
        	insteadOf = "git@host:"
        [sendemail]
        "#);
        let plain = "[remote \"origin\"]\n\turl = https://host/a@b\n\turl = git@host:x\n";
        assert_eq!(strip(plain), plain);
    }
}
