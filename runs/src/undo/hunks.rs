//! The changes of one text, as hunks that can be undone one by one.

use similar::{DiffOp, DiffTag, TextDiff};

/// Unchanged lines around a change, as in git.
const AROUND: usize = 3;

/// A text before and after, compared by lines.
pub(super) struct Hunks<'t> {
    diff: TextDiff<'t, 't, str>,
}

impl<'t> Hunks<'t> {
    /// Compares the two.
    pub(super) fn of(before: &'t str, after: &'t str) -> Self {
        Self {
            diff: TextDiff::from_lines(before, after),
        }
    }

    /// Each hunk as a unified diff shows it.
    pub(super) fn shown(&self) -> Vec<String> {
        let mut unified = self.diff.unified_diff();
        unified
            .context_radius(AROUND)
            .iter_hunks()
            .map(|hunk| hunk.to_string())
            .collect()
    }

    /// The new text without the hunks that are undone; one without an answer stays.
    pub(super) fn without(&self, undone: &[bool]) -> String {
        let groups = self.diff.grouped_ops(AROUND);
        let is_undone = |op: &DiffOp| {
            let number = groups.iter().position(|group| group.contains(op));
            number
                .and_then(|number| undone.get(number))
                .copied()
                .unwrap_or(false)
        };
        let mut text = String::new();
        for op in self.diff.ops() {
            if op.tag() != DiffTag::Equal && is_undone(op) {
                op.old_range()
                    .filter_map(|line| self.diff.old_slice(line))
                    .for_each(|line| text.push_str(line));
            } else {
                op.new_range()
                    .filter_map(|line| self.diff.new_slice(line))
                    .for_each(|line| text.push_str(line));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hunk_can_be_undone_without_the_others() {
        let lines = |first: &str, last: &str| format!("{first}\n{}{last}", "same\n".repeat(9));
        let (before, after) = (lines("a", "z"), lines("A", "Z\n"));
        let hunks = Hunks::of(&before, &after);
        assert_eq!(hunks.shown().len(), 2);
        assert_eq!(hunks.without(&[false, false]), after);
        assert_eq!(hunks.without(&[true, true]), before);
        assert_eq!(hunks.without(&[true, false]), lines("a", "Z\n"));
        assert_eq!(hunks.without(&[false, true]), lines("A", "z"));
    }

    #[test]
    fn lines_that_come_and_go_are_hunks_too() {
        let hunks = Hunks::of("one\ntwo\n", "zero\none\n");
        assert_eq!(hunks.shown().len(), 1);
        assert_eq!(hunks.without(&[true]), "one\ntwo\n");
        assert_eq!(Hunks::of("", "new\n").without(&[true]), "");
    }
}
