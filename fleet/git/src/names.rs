//! Names from outside, checked before they become part of a refspec or an argument.

use std::fmt;
use std::str::FromStr;

/// A commit's id in full: 40 or 64 lower-case hexadecimal digits.
///
/// ```
/// use code_commit_fleet_git::CommitId;
/// assert!("a1".repeat(20).parse::<CommitId>().is_ok());
/// for refused in ["", "main", "a1a1a1", "+a1a1a1"] {
///     assert!(refused.parse::<CommitId>().is_err());
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

/// The name of a branch without `refs/heads/`, by the rules of `git check-ref-format --branch`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch(String);

/// Why a text is not such a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It may be an abbreviation, or the name of something else.
    #[error("`{0}` is not a commit id in full: 40 or 64 lower-case hexadecimal digits")]
    Commit(String),
    /// Git allows no such branch.
    #[error("`{0}` is not a valid name of a branch")]
    Branch(String),
    /// Git allows no such ref.
    #[error("`{0}` is not a valid name of a ref")]
    Ref(String),
}

impl CommitId {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Branch {
    /// The name as people write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as [`resolve`](crate::resolve) takes it for a branch only.
    pub fn full(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl FromStr for CommitId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if code_commit_fleet_wire::is_commit(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError::Commit(text.escape_debug().to_string()))
    }
}

impl FromStr for Branch {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_ref(&format!("refs/heads/{text}")) && !text.starts_with('-') && text != "HEAD" {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError::Branch(text.escape_debug().to_string()))
    }
}

/// The rules of `git check-ref-format --allow-onelevel`.
pub(crate) fn is_ref(name: &str) -> bool {
    let is_odd = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    // git compares bytes, so only this ending counts.
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.as_bytes().ends_with(b".lock")
    };
    let has_odd_pair = name.contains("..") || name.contains("@{");
    name != "@"
        && !name.contains(is_odd)
        && !has_odd_pair
        && !name.ends_with('.')
        && name.split('/').all(is_part)
}

impl TryFrom<String> for CommitId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_hash_is_a_commit() {
        for good in ["a1".repeat(20), "0f".repeat(32)] {
            assert_eq!(good.parse::<CommitId>().unwrap().as_str(), good);
        }
        for other in [
            "",
            "main",
            "a1a1a1",
            &"A1".repeat(20),
            &"g1".repeat(20),
            &"é".repeat(20),
        ] {
            assert!(other.parse::<CommitId>().is_err(), "{other}");
        }
    }

    #[tokio::test]
    async fn a_branch_has_a_name_that_git_allows() {
        let (good, bad) = (
            [
                "main",
                "release/1.0",
                "ü",
                "a@b",
                "a-",
                "refs/heads/x",
                "x.locked",
                "{x}",
                "@",
            ],
            [
                "", "HEAD", "-d", "a..b", "a b", "a:b", "a^", "a~1", "a?", "a*", "a[b", "a\\b",
                "/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a@{1}", "a\u{7f}",
                "a\n",
            ],
        );
        let says_git = async |name: &str| {
            crate::git(
                std::path::Path::new("/"),
                &["check-ref-format", "--branch", name],
            )
            .await
            .is_ok()
        };
        for name in good {
            assert!(
                name.parse::<Branch>().is_ok() && says_git(name).await,
                "{name}"
            );
        }
        for name in bad {
            assert!(
                name.parse::<Branch>().is_err() && !says_git(name).await,
                "{name}"
            );
        }
    }
}
