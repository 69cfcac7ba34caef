//! How much of the context files a prompt shows (S2 §4.1).

use prompt::order::Context;

/// All context files together show at most so many bytes: 200 KB, a KB being 1,024 bytes.
pub const CONTEXT_BYTES: usize = 200 * 1024;

/// The files as the prompt shows them. Each in its turn takes what the ones before it have left; a file that does not fit is cut
/// behind the last whole line that does, or behind the last whole character of a single line. None is a file that is not there.
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
            Context { path, text, left_out_bytes }
        })
        .collect()
}

fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let fits = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    let lines = fits.rfind('\n').and_then(|end| fits.get(..=end));
    lines.unwrap_or(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(files: &[usize]) -> Vec<(usize, usize)> {
        let files = files.iter().map(|bytes| ("f".to_owned(), Some("x".repeat(*bytes)))).collect();
        shown_context(files)
            .into_iter()
            .map(|file| (file.text.unwrap_or_default().len(), file.left_out_bytes))
            .collect()
    }

    #[test]
    fn two_hundred_kilobytes_are_shown_and_the_rest_is_counted() {
        assert_eq!(lengths(&[10, 20]), [(10, 0), (20, 0)]);
        assert_eq!(lengths(&[CONTEXT_BYTES, 1]), [(CONTEXT_BYTES, 0), (0, 1)]);
        assert_eq!(lengths(&[CONTEXT_BYTES - 5, 9, 3]), [(CONTEXT_BYTES - 5, 0), (5, 4), (0, 3)]);
    }

    #[test]
    fn a_cut_falls_behind_a_line_and_never_into_a_character() {
        assert_eq!(cut("one\ntwo\nthree", 9), "one\ntwo\n");
        assert_eq!(cut("ääää", 3), "ä");
        assert_eq!(cut("one", 3), "one");
        assert_eq!(cut("one", 0), "");
    }

    #[test]
    fn a_file_that_is_not_there_takes_nothing() {
        let files = shown_context(vec![("new".to_owned(), None), ("old".to_owned(), Some("x".to_owned()))]);
        assert_eq!(files[0].text, None);
        assert_eq!(files[1].text.as_deref(), Some("x"));
    }
}
