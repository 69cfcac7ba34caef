//! What of a build's output the model is shown: what a terminal would show at the end, without a middle that does not fit.

use std::borrow::Cow;

/// A line that comes more often than this in a row is shown once.
const REPEATS: usize = 3;

/// `text` as a terminal would show it in the end, or when that has more than `limit` bytes, its first and last half with a line
/// between them that says how much was left out of `whole_bytes`: of a very long one the text is but the two ends. The end of
/// a build's output names the error, its beginning the cause.
pub(crate) fn shown(text: &str, whole_bytes: usize, limit: usize) -> Cow<'_, str> {
    let not_held = whole_bytes.saturating_sub(text.len());
    let screen = on_screen(text);
    if screen.len() <= limit {
        return screen;
    }
    let head = screen
        .get(..screen.floor_char_boundary(limit / 2))
        .unwrap_or_default();
    let tail = screen
        .get(screen.ceil_char_boundary(screen.len() - limit / 2)..)
        .unwrap_or_default();
    let left_out = not_held + screen.len() - head.len() - tail.len();
    let break_line = if head.ends_with('\n') { "" } else { "\n" };
    Cow::Owned(format!(
        "{head}{break_line}[code-commit] {left_out} bytes left out here\n{tail}"
    ))
}

/// `text` as a terminal would show it in the end. A line that comes many times in a row is there once.
pub fn on_screen(text: &str) -> Cow<'_, str> {
    let drawn = if text.contains(['\r', '\u{8}', '\u{1b}']) {
        Cow::Owned(Screen::draw(text))
    } else {
        Cow::Borrowed(text)
    };
    let lines: Vec<&str> = drawn.split_inclusive('\n').collect();
    let runs: Vec<&[&str]> = lines.chunk_by(|one, next| one == next).collect();
    if runs.iter().all(|run| run.len() <= REPEATS) {
        return drawn;
    }
    let mut told = String::with_capacity(drawn.len());
    for run in runs {
        let times = run.len();
        let is_long = times > REPEATS;
        run.iter()
            .take(if is_long { 1 } else { times })
            .for_each(|line| told.push_str(line));
        if is_long {
            told.push_str(&format!(
                "[code-commit] the line above came {times} times\n"
            ));
        }
    }
    Cow::Owned(told)
}

/// The lines of a terminal without an end, and its cursor.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    fn draw(text: &str) -> String {
        let mut screen = Self::default();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '\n' => (screen.row, screen.column) = (screen.row + 1, 0),
                '\r' => screen.column = 0,
                '\u{8}' => screen.column = screen.column.saturating_sub(1),
                '\u{1b}' => screen.escape(&mut rest),
                _ => screen.put(character),
            }
        }
        screen.line();
        let lines = screen.lines.into_iter().map(String::from_iter);
        lines.collect::<Vec<String>>().join("\n")
    }

    /// The line that the cursor is on.
    fn line(&mut self) -> Option<&mut Vec<char>> {
        if self.lines.len() <= self.row {
            self.lines.resize_with(self.row + 1, Vec::new);
        }
        self.lines.get_mut(self.row)
    }

    fn put(&mut self, character: char) {
        let column = self.column;
        if let Some(line) = self.line() {
            line.resize(line.len().max(column + 1), ' ');
            line.splice(column..=column, [character]);
        }
        self.column += 1;
    }

    /// ECMA-48 §5.4: parameters, then a letter. Colours and whatever else draws nothing is dropped.
    fn escape(&mut self, rest: &mut std::str::Chars<'_>) {
        /// No terminal is larger.
        const FARTHEST: usize = 1000;
        match rest.next() {
            Some('[') => {}
            // A title or a link, up to BEL or ST.
            Some(']') => {
                rest.find(|end| matches!(end, '\u{7}' | '\\'));
                return;
            }
            _ => return,
        }
        let mut number = String::new();
        let is_end = |next: &char| matches!(next, '@'..='~');
        let letter = rest.find(|next| {
            number.extend(Some(*next).filter(|next| !is_end(next)));
            is_end(next)
        });
        let given = number
            .parse::<usize>()
            .ok()
            .map(|given| given.min(FARTHEST));
        let count = given.unwrap_or(1).max(1);
        match letter.unwrap_or_default() {
            'A' | 'F' => self.row = self.row.saturating_sub(count),
            'B' | 'E' => self.row += count,
            'C' => self.column += count,
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.column = count - 1,
            'K' => self.erase(given.unwrap_or(0)),
            _ => {}
        }
        if matches!(letter, Some('E' | 'F')) {
            self.column = 0;
        }
    }

    /// 0: to the end of the line; 1: to its beginning; 2: all of it.
    fn erase(&mut self, part: usize) {
        let column = self.column;
        let Some(line) = self.line() else { return };
        match part {
            0 => line.truncate(column),
            1 => line
                .iter_mut()
                .take(column + 1)
                .for_each(|shown| *shown = ' '),
            _ => line.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(text: &str) -> String {
        shown(text, text.len(), usize::MAX).into_owned()
    }

    #[test]
    fn short_output_is_sent_whole() {
        assert_eq!(shown("12345678", 8, 8), "12345678");
    }

    #[test]
    fn long_output_loses_its_middle_and_says_so() {
        assert_eq!(
            shown("1\n345678\n0", 10, 4),
            "1\n[code-commit] 6 bytes left out here\n\n0"
        );
    }

    #[test]
    fn what_memory_does_not_hold_is_left_out_as_well() {
        assert_eq!(
            shown("1\n3…8\n0", 100, 4),
            "1\n[code-commit] 96 bytes left out here\n\n0"
        );
    }

    #[test]
    fn characters_are_never_cut() {
        let text = "ä".repeat(100);
        for limit in 0..210 {
            let told = shown(&text, text.len(), limit);
            assert!(told.chars().all(|c| c == 'ä' || c.is_ascii()));
        }
    }

    #[test]
    fn a_line_that_is_drawn_over_is_shown_as_it_was_last() {
        assert_eq!(screen("1%\r50%\r100%\ndone\n"), "100%\ndone\n");
        assert_eq!(screen("longer\rshort"), "shortr");
        assert_eq!(screen("longer\r\u{1b}[Kshort\n"), "short\n");
        assert_eq!(screen("ab\u{8}c\n"), "ac\n");
        assert_eq!(screen("windows\r\nlines\r\n"), "windows\nlines\n");
    }

    #[test]
    fn lines_that_the_cursor_goes_back_to_are_shown_as_they_were_last() {
        let text = "a 1\nb 1\n\u{1b}[2Aa 2\n\u{1b}[Kb 2\nend\n";
        assert_eq!(screen(text), "a 2\nb 2\nend\n");
        assert_eq!(screen("x\u{1b}[99Ay\u{1b}[2D\u{1b}[1Cz\n"), "xz\n");
    }

    #[test]
    fn colours_titles_and_halves_of_sequences_are_not_shown() {
        assert_eq!(screen("\u{1b}[1;31merror\u{1b}[0m: x\n"), "error: x\n");
        assert_eq!(screen("\u{1b}]0;title\u{7}x\n\u{1b}[3"), "x\n");
        assert_eq!(screen("x\u{1b}"), "x");
    }

    #[test]
    fn a_line_that_is_repeated_is_shown_once_with_its_count() {
        let text = format!("begin\n{}end\nend\nend\n", "waiting\n".repeat(4));
        assert_eq!(
            screen(&text),
            "begin\nwaiting\n[code-commit] the line above came 4 times\nend\nend\nend\n"
        );
    }

    #[test]
    fn a_megabyte_of_progress_is_a_few_bytes() {
        let bar: String = (0..60_000)
            .map(|n| format!("\r{n:>6} of 60000 files"))
            .collect();
        assert_eq!(screen(&bar), " 59999 of 60000 files");
    }
}
