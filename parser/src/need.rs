//! A reply that changes nothing and asks for files: lines of `^^^need PATH`.

use crate::fence::{Kind, NEED};
use crate::line::{MarkerLines, Role};

/// The paths that a reply asks for, if it has no other fence. They are not checked.
///
/// ```
/// use code_commit_parser::needed;
///
/// assert_eq!(needed("I have to see two.\n^^^need a.rs\n^^^need b c.rs\n"), Some(vec!["a.rs", "b c.rs"]));
/// assert_eq!(needed("^^^need a.rs\n^^^b.rs\n^^^end\n"), None);
/// ```
#[must_use]
pub fn needed(text: &str) -> Option<Vec<&str>> {
    let (mut lines, mut paths) = (MarkerLines::new(text), Vec::new());
    while let Some(line) = lines.next_outside() {
        match line.marker.role {
            _ if !line.is_fence() => {}
            Role::Tag(_) => {}
            Role::End if line.marker.kind == Kind::File && !paths.is_empty() => {}
            Role::Open(name) if line.marker.kind == Kind::File => {
                let path = name.strip_prefix(NEED)?;
                paths.push(path.strip_prefix(char::is_whitespace)?.trim());
            }
            Role::Open(_)
            | Role::End
            | Role::Delete
            | Role::Bare
            | Role::Whole(_)
            | Role::Crowded { .. } => return None,
        }
    }
    (!paths.is_empty()).then_some(paths)
}

#[cfg(test)]
mod tests {
    use super::needed;

    #[test]
    fn a_reply_asks_for_files_if_it_has_no_other_fence() {
        for (text, paths) in [
            ("^^^need a\n^^^end\n^^^need  b c \n", Some(vec!["a", "b c"])),
            ("<think>\n</think>\n^^^need a\n", Some(vec!["a"])),
            ("^^^end\n^^^need a\n", None),
            ("^^^need a\n&&&end\n", None),
            ("^^^need a\n^^^delete\n", None),
            ("^^^needa\n", None),
            ("nothing\n", None),
        ] {
            assert_eq!(needed(text), paths, "{text}");
        }
    }
}
