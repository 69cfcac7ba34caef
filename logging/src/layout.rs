//! The names of a round's files, as each loop's seed specifies them.

/// Names of the files of one kind of run; rounds are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `1-query.txt`, `1-response.json`, `1-response.txt`, `1-build.txt` (S1 §Running the Build).
    NumberFirst,
    /// `query-1.txt`, `query-1-response.json`, `query-1-response.txt`, `query-1-build.txt` (S0 §Logging).
    QueryFirst,
}

impl Layout {
    /// The prompt.
    #[must_use]
    pub fn query(self, round: u32) -> String {
        match self {
            Self::NumberFirst => format!("{round}-query.txt"),
            Self::QueryFirst => format!("query-{round}.txt"),
        }
    }

    /// The whole answer of the service.
    #[must_use]
    pub fn response_json(self, round: u32) -> String {
        self.of_round(round, "response.json")
    }

    /// The answer's text.
    #[must_use]
    pub fn response_text(self, round: u32) -> String {
        self.of_round(round, "response.txt")
    }

    /// What the build printed, or why there was none.
    #[must_use]
    pub fn build(self, round: u32) -> String {
        self.of_round(round, "build.txt")
    }

    /// The new content of a file that the answer edits; those of a round are counted from 0.
    #[must_use]
    pub fn edited(self, round: u32, number: usize) -> String {
        self.of_round(round, &format!("edited-{number}.txt"))
    }

    /// The content that the build gave to a file; those of a round are counted from 0.
    #[must_use]
    pub fn rebuilt(self, round: u32, number: usize) -> String {
        self.of_round(round, &format!("rebuilt-{number}.txt"))
    }

    fn of_round(self, round: u32, what: &str) -> String {
        match self {
            Self::NumberFirst => format!("{round}-{what}"),
            Self::QueryFirst => format!("query-{round}-{what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_seeds() {
        let names = |layout: Layout| {
            [
                layout.query(2),
                layout.response_json(2),
                layout.response_text(2),
                layout.build(2),
            ]
            .join(" ")
        };
        assert_eq!(
            names(Layout::NumberFirst),
            "2-query.txt 2-response.json 2-response.txt 2-build.txt"
        );
        assert_eq!(
            names(Layout::QueryFirst),
            "query-2.txt query-2-response.json query-2-response.txt query-2-build.txt"
        );
    }
}
