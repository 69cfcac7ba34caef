//! Whether a shell line says itself where its arguments go.

/// Whether a shell would expand `$1`, `${2:-x}`, `"$@"`, `${*}` or `for NAME; do` somewhere in the line.
pub(super) fn uses_arguments(line: &str) -> bool {
    let (mut rest, mut is_word_start) = (line.as_bytes(), true);
    // What closes each quote, substitution and expansion that is open.
    let mut open: Vec<u8> = Vec::new();
    loop {
        // An expansion is quoted if what is around it is.
        let is_quoted = open.iter().rev().find(|closing| **closing != b'}') == Some(&b'"');
        let opened = opened(rest, is_quoted);
        let after = match rest {
            [] => return false,
            [b'$', name @ ..] if is_argument(name) => return true,
            [b'f', b'o', b'r', b' ' | b'\t', name @ ..] if is_word_start && has_no_list(name) => {
                return true;
            }
            // A here-document may contain any quotes.
            [b'<', b'<', text @ ..] if !is_quoted => return names_argument(text),
            [b'#', comment @ ..] if is_word_start && !is_quoted => past(b'\n', comment),
            [b'\'', text @ ..] if !is_quoted => past(b'\'', text),
            // Backquotes remove the backslash before their own shell sees the `$`.
            [b'\\', after @ ..] if after.starts_with(b"$") && open.contains(&b'`') => after,
            [b'\\', _, after @ ..] | [b'$', b'$', after @ ..] => after,
            [byte, after @ ..] if open.last() == Some(byte) => {
                open.pop();
                after
            }
            [_, after @ ..] => opened.map_or(after, |(closing, after)| {
                open.push(closing);
                after
            }),
        };
        let before = rest
            .len()
            .checked_sub(after.len() + 1)
            .and_then(|last| rest.get(last));
        is_word_start = before.is_some_and(|byte| b" \t\n;&|(".contains(byte));
        rest = after;
    }
}

/// What closes the quote, substitution or expansion that begins here, and what follows its beginning.
fn opened(text: &[u8], is_quoted: bool) -> Option<(u8, &[u8])> {
    match text {
        [b'$', b'{', after @ ..] => Some((b'}', after)),
        [b'$', b'(', after @ ..] => Some((b')', after)),
        [b'(', after @ ..] if !is_quoted => Some((b')', after)),
        [quote @ (b'"' | b'`'), after @ ..] => Some((*quote, after)),
        _ => None,
    }
}

/// After a `$`.
fn is_argument(name: &[u8]) -> bool {
    match name {
        [b'@' | b'*' | b'1'..=b'9', ..] => true,
        [b'{', name @ ..] => {
            let name = name
                .strip_prefix(b"#")
                .or(name.strip_prefix(b"!"))
                .unwrap_or(name);
            let mut digits = name.iter().take_while(|byte| byte.is_ascii_digit());
            matches!(name, [b'@' | b'*', ..]) || digits.any(|digit| *digit != b'0')
        }
        _ => false,
    }
}

fn names_argument(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'$').skip(1).any(is_argument)
}

/// After `for`: without a list, the loop is over the arguments.
fn has_no_list(name: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut rest = name.trim_ascii_start();
    while let [byte, after @ ..] = rest
        && (is_name(byte))
    {
        rest = after;
    }
    let rest = rest.trim_ascii_start();
    rest.strip_prefix(b";")
        .unwrap_or(rest)
        .trim_ascii_start()
        .starts_with(b"do")
}

fn past(end: u8, text: &[u8]) -> &[u8] {
    text.iter()
        .position(|byte| *byte == end)
        .and_then(|at| text.get(at + 1..))
        .unwrap_or_default()
}
