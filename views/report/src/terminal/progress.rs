//! What is in progress: how much of its answer the model has written, what the build printed last, and the
//! cost so far. Nothing of it stays on the terminal.

use super::printed::LastLines;
use crate::live::LiveLine;
use crate::output::printable;
use crate::phrases;

/// Bytes of text for each token. What a token is, is known only once the service has counted; code and English are
/// at about 3.5 to 4 with all of them.
const BYTES_OF_A_TOKEN: u64 = 4;

pub(super) struct Status {
    pub(super) live: LiveLine,
    /// `round 1/4`
    head: String,
    doing: String,
    spent_usd: Option<f64>,
    last_lines: LastLines,
}

impl Status {
    pub(super) fn new(live: LiveLine) -> Self {
        Self {
            live,
            head: String::new(),
            doing: String::new(),
            spent_usd: None,
            last_lines: LastLines::default(),
        }
    }

    /// Starts a line with its clock: `round 1/4  building`.
    pub(super) fn begin(&mut self, head: String, doing: &str) {
        self.last_lines = LastLines::default();
        (self.head, self.doing) = (head, doing.to_owned());
        self.live.begin(&self.text());
    }

    /// Says something else, with the same clock.
    pub(super) fn now(&mut self, doing: String) {
        self.doing = doing;
        self.live.say(&self.text());
    }

    pub(super) fn spent(&mut self, usd: f64) {
        self.spent_usd = Some(usd);
        self.live.say(&self.text());
    }

    /// A piece of the output of a command.
    pub(super) fn printed(&mut self, piece: &[u8]) {
        self.last_lines.add(piece);
        self.live.show_below(&self.last_lines.shown());
    }

    fn text(&self) -> String {
        let cost = self
            .spent_usd
            .map(|usd| format!(", {} so far", phrases::cost(Some(usd))));
        format!("{}  {}{}", self.head, self.doing, cost.unwrap_or_default())
    }
}

/// `thinking, 1.2 kB`, `writing src/a.rs (file 2), about 340 tokens`.
pub(super) fn received(bytes: u64, is_thinking: bool, text_bytes: u64, files: &[String]) -> String {
    if is_thinking || text_bytes == 0 {
        let doing = if is_thinking { "thinking" } else { "receiving" };
        return format!("{doing}, {}", phrases::bytes(bytes));
    }
    let tokens = phrases::count(text_bytes.div_ceil(BYTES_OF_A_TOKEN), "token");
    let file = files
        .last()
        .map(|path| format!(" {} (file {})", printable(path), files.len()));
    format!("writing{}, about {tokens}", file.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_by_its_files_and_tokens() {
        let files = ["src/a.rs".to_owned(), "src/b\u{202e}.rs".to_owned()];
        let told = [
            received(1_200, true, 0, &[]),
            received(300, false, 0, &[]),
            received(900, false, 37, &[]),
            received(900, false, 4_800, &files),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        thinking, 1.2 kB
        receiving, 300 B
        writing, about 10 tokens
        writing src/b\u{202e}.rs (file 2), about 1,200 tokens
        ");
    }
}
