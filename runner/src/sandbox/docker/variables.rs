//! Passes variables to a container in a file in memory, because every user of the machine can read
//! a command line.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use crate::Env;
use crate::sandbox::descriptors::{memory_file, number};

/// The client fails at lines of 64 KiB.
const LONGEST_LINE: usize = 60 << 10;

/// The client's arguments, and the file that one of them names; the client must inherit it.
pub(super) fn variables(env: &Env) -> io::Result<(Vec<OsString>, OwnedFd)> {
    let (lines, others): (Vec<_>, Vec<_>) =
        env.iter().partition(|(name, value)| is_a_line(name, value));
    let pair = |(name, value): (&OsStr, &OsStr)| [name, value].join(OsStr::new("="));
    let mut text = Vec::new();
    for line in lines.into_iter().map(pair) {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    let file = memory_file("variables", &text)?;
    let mut arguments = vec![
        "--env-file".into(),
        format!("/proc/self/fd/{}", number(&file)).into(),
    ];
    arguments.extend(
        others
            .into_iter()
            .flat_map(|other| ["--env".into(), pair(other)]),
    );
    Ok((arguments, file))
}

/// Whether the client reads `NAME=VALUE` from a line correctly. It needs UTF-8, skips lines that
/// begin with `#`, and strips leading white space and a trailing `\r`; newer versions also strip
/// quotes around a value.
fn is_a_line(name: &OsStr, value: &OsStr) -> bool {
    let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
        return false;
    };
    let is_plain = !name.is_empty()
        && !name.starts_with('#')
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    let is_quoted = ['"', '\'']
        .iter()
        .any(|quote| value.starts_with(*quote) && value.ends_with(*quote));
    is_plain
        && !is_quoted
        && !value.contains(['\n', '\r'])
        && name.len() + value.len() < LONGEST_LINE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    /// The arguments, one per line, and the file.
    fn check(given: &[(&str, &[u8])]) -> (String, String) {
        let mut env = Env::default();
        for (name, value) in given {
            env.set(name, OsStr::from_bytes(value));
        }
        let (arguments, file) = variables(&env).unwrap();
        let words: Vec<_> = arguments.iter().map(|word| format!("{word:?}")).collect();
        let words = words
            .join("\n")
            .replace(&format!("fd/{}\"", number(&file)), "fd/N\"");
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).unwrap();
        (words, text)
    }

    #[test]
    fn no_key_is_an_argument() {
        let (arguments, file) = check(&[
            ("GEMINI_API_KEY", b"s3cret"),
            ("ANTHROPIC_API_KEY", b" s3cret=# $HOME \"\\n "),
            ("PASSWORD", "s3cret ä".as_bytes()),
            ("EMPTY", b""),
        ]);
        insta::assert_snapshot!(arguments, @r#"
        "--env-file"
        "/proc/self/fd/N"
        "#);
        assert_eq!(
            file,
            "ANTHROPIC_API_KEY= s3cret=# $HOME \"\\n \nEMPTY=\nGEMINI_API_KEY=s3cret\nPASSWORD=s3cret ä\n"
        );
    }

    #[test]
    fn what_a_line_cannot_hold_is_an_argument() {
        let (arguments, file) = check(&[
            ("#COMMENT", b"x"),
            (" SPACE", b"x"),
            ("IN SIDE", b"x"),
            ("\u{feff}BOM", b"x"),
            ("LINES", b"a\nB=c"),
            ("RETURN", b"a\r"),
            ("BYTES", b"\xff"),
            ("QUOTED", b"\"x\""),
        ]);
        insta::assert_snapshot!(arguments, @r##"
        "--env-file"
        "/proc/self/fd/N"
        "--env"
        " SPACE=x"
        "--env"
        "#COMMENT=x"
        "--env"
        "BYTES=\xFF"
        "--env"
        "IN SIDE=x"
        "--env"
        "LINES=a\nB=c"
        "--env"
        "QUOTED=\"x\""
        "--env"
        "RETURN=a\r"
        "--env"
        "\u{feff}BOM=x"
        "##);
        assert_eq!(file, "");
    }

    #[test]
    fn a_line_that_the_client_would_give_up_at_is_an_argument() {
        let long = vec![b'x'; 64 << 10];
        let (arguments, file) = check(&[("LONG", &long), ("SHORT", b"x")]);
        assert!(arguments.contains("LONG=xxx"));
        assert_eq!(file, "SHORT=x\n");
    }
}
