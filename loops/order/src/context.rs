//! How much of the context files a prompt shows (S2 §4.1).

use code_commit_prompt::order::Context;

/// The maximum size of all context files in a prompt: 200 KB, with 1,024 bytes per KB.
pub const CONTEXT_BYTES: usize = 200 * 1024;

/// The files as the prompt shows them, in order, within [`CONTEXT_BYTES`]. A file that does not fit
/// is cut after the last whole line that does, because half a line looks like a whole one. `None`
/// stands for a missing file.
pub fn shown_context(files: Vec<(String, Option<String>)>) -> Vec<Context> {
    let mut left = CONTEXT_BYTES;
    files
        .into_iter()
        .map(|(path, text)| {
            let (text, left_out_bytes) = text.map_or((None, 0), |text| {
                let cut = cut(&text, left);
                left -= cut.len();
                (Some(cut.to_owned()), text.len() - cut.len())
            });
            Context {
                path,
                text,
                left_out_bytes,
            }
        })
        .collect()
}

fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let fits = text.as_bytes().get(..limit).unwrap_or_default();
    let lines = fits
        .iter()
        .rposition(|byte| *byte == b'\n')
        .and_then(|end| text.get(..=end));
    lines.unwrap_or_default()
}

/// The files that the model sees whole, and those that it sees only in part.
pub(crate) fn shown(context: &[Context]) -> [Vec<String>; 2] {
    let (whole, in_part): (Vec<&Context>, Vec<&Context>) =
        context.iter().partition(|file| file.left_out_bytes == 0);
    [whole, in_part].map(|files| files.into_iter().map(|file| file.path.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(files: &[usize]) -> Vec<(usize, usize)> {
        let lines = |bytes: usize| "abc\n".repeat(bytes / 4);
        let files = files
            .iter()
            .map(|bytes| ("f".to_owned(), Some(lines(*bytes))))
            .collect();
        shown_context(files)
            .into_iter()
            .map(|file| (file.text.unwrap_or_default().len(), file.left_out_bytes))
            .collect()
    }

    #[test]
    fn two_hundred_kilobytes_are_shown_and_the_rest_is_counted() {
        assert_eq!(lengths(&[12, 20]), [(12, 0), (20, 0)]);
        assert_eq!(lengths(&[CONTEXT_BYTES, 4]), [(CONTEXT_BYTES, 0), (0, 4)]);
        assert_eq!(
            lengths(&[CONTEXT_BYTES - 8, 12, 4]),
            [(CONTEXT_BYTES - 8, 0), (8, 4), (0, 4)]
        );
    }

    #[test]
    fn a_cut_falls_behind_a_line_and_never_into_one() {
        assert_eq!(cut("one\ntwo\nthree", 9), "one\ntwo\n");
        assert_eq!(cut("one\ntwo\nthree", 8), "one\ntwo\n");
        assert_eq!(cut("one\n\u{e4}\u{e4}", 5), "one\n");
        assert_eq!(cut("a single line", 8), "");
        assert_eq!(cut("one", 3), "one");
        assert_eq!(cut("one", 0), "");
    }

    #[test]
    fn a_file_is_shown_in_part_if_any_of_it_is_left_out() {
        let file = |name: &str, bytes| (name.to_owned(), Some("abc\n".repeat(bytes / 4)));
        let files = vec![
            file("whole", CONTEXT_BYTES - 4),
            file("part", 8),
            file("none", 4),
            ("new".to_owned(), None),
        ];
        let [whole, in_part] = shown(&shown_context(files));
        assert_eq!(in_part, ["part", "none"]);
        assert!(
            !whole.is_empty() && whole.iter().all(|path| !in_part.contains(path)),
            "{whole:?}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_takes_nothing() {
        let files = shown_context(vec![
            ("new".to_owned(), None),
            ("old".to_owned(), Some("x".to_owned())),
        ]);
        assert_eq!(files[0].text, None);
        assert_eq!(files[1].text.as_deref(), Some("x"));
    }
}
