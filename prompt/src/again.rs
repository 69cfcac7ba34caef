//! The query of a run that goes on from a finished one.

/// Longer changes are only named: the code that is shown holds them.
const MOST_BYTES_OF_DIFFS: usize = 64 << 10;
/// Of the end of a build's output, which names the error.
const MOST_BYTES_OF_OUTPUT: usize = 16 << 10;
/// Before the words.
const WORDS: &str = "# What to do now\n\n";

/// What the finished run was, and what is to be different.
#[derive(Debug, Clone, Copy)]
pub struct FollowUp<'f> {
    /// What it was asked for.
    pub query: &'f str,
    /// What it changed: the path of each file, and its unified diff.
    pub diffs: &'f [(String, String)],
    /// Whether the code that is shown still holds that.
    pub is_in_tree: bool,
    /// How it ended.
    pub verdict: &'f str,
    /// What its last build printed, if that failed.
    pub output: Option<&'f str>,
    /// What the person says to it.
    pub words: &'f str,
}

/// The query: the old one first, so that a cached prompt can be used again.
#[must_use]
pub fn query(of: &FollowUp<'_>) -> String {
    let FollowUp {
        query,
        verdict,
        words,
        ..
    } = of;
    let mut text = format!("{}\n\n# The earlier attempt\n\n", query.trim_end());
    text.push_str(if of.is_in_tree {
        "The request above was worked on before. The code that you are shown already contains this change:\n\n"
    } else {
        "The request above was worked on before. This change was made and taken back; the code that you are shown does not contain it:\n\n"
    });
    text.push_str(&changes(of.diffs));
    text.push_str(&format!("\nIt ended like this: {verdict}\n"));
    if let Some(output) = of.output {
        let end = output
            .get(output.ceil_char_boundary(output.len().saturating_sub(MOST_BYTES_OF_OUTPUT))..);
        let end = end.unwrap_or_default();
        let left_out = output.len() - end.len();
        let note = if left_out > 0 {
            format!("[… {left_out} bytes left out here …]\n")
        } else {
            String::new()
        };
        text.push_str(&format!(
            "\nThe last build printed:\n\n{note}{}\n",
            end.trim_end()
        ));
    }
    text.push_str(&format!("\n{WORDS}{}\n", words.trim()));
    text
}

/// What the person said in such a query; `None` if it is none.
#[must_use]
pub fn words(query: &str) -> Option<&str> {
    query.rsplit_once(WORDS).map(|(_, words)| words)
}

fn changes(diffs: &[(String, String)]) -> String {
    if diffs.is_empty() {
        return "(no file was changed)\n".to_owned();
    }
    let bytes: usize = diffs.iter().map(|(_, diff)| diff.len()).sum();
    if bytes <= MOST_BYTES_OF_DIFFS {
        return diffs.iter().map(|(_, diff)| &**diff).collect();
    }
    diffs.iter().map(|(path, _)| format!("{path}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: FollowUp<'_> = FollowUp {
        query: "Say hello.\n",
        diffs: &[],
        is_in_tree: true,
        verdict: "done",
        output: None,
        words: "Not like that: say it loud.",
    };

    #[test]
    fn the_old_query_comes_first_and_the_new_words_last() {
        let diffs = [(
            "a".to_owned(),
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+hello\n".to_owned(),
        )];
        insta::assert_snapshot!(query(&FollowUp { diffs: &diffs, ..OF }), @"
        Say hello.

        # The earlier attempt

        The request above was worked on before. The code that you are shown already contains this change:

        --- a/a
        +++ b/a
        @@ -1 +1 @@
        -x
        +hello

        It ended like this: done

        # What to do now

        Not like that: say it loud.
        ");
    }

    #[test]
    fn a_failed_build_is_shown_from_its_end_and_a_large_change_by_its_files() {
        let output = format!("{}the error\n", "x".repeat(MOST_BYTES_OF_OUTPUT));
        let diffs = [("src/a.rs".to_owned(), "+\n".repeat(MOST_BYTES_OF_DIFFS))];
        let text = query(&FollowUp {
            diffs: &diffs,
            is_in_tree: false,
            verdict: "attempts used up",
            output: Some(&output),
            ..OF
        });
        assert!(
            text.contains("taken back") && text.contains("\n\nsrc/a.rs\n\nIt ended"),
            "{text}"
        );
        assert!(
            text.contains("[… 10 bytes left out here …]\nx") && text.contains("the error\n\n#"),
            "{text}"
        );
    }
}
