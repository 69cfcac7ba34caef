//! The prompts of `implement` (S0 §Implementation Details): a transcript that only grows, so that
//! each prompt begins with the bytes of the one before and the service can cache it.
//!
//! Assumption: from its third part on, the seed's template puts the sentence about the build after
//! the build's output instead of before it. Here, every part follows the second one: the model's
//! reply, the sentence, the build's output.

use std::ops::Range;

use crate::push_last_part;

/// Explains the four syntaxes in the words of S0, and the additions of the grammar: deletions and
/// longer fences. A project's own system prompt begins with it.
pub const SYSTEM_PROMPT: &str = include_str!("../text/implement/system-prompt.md");

const FIRST_ANSWER: &str =
    "The above query was provided, and you provided the following data in your response\n";
const NEXT_ANSWER: &str = "You then provided the following data in your subsequent response\n";
/// The typo is in the seed, which is quoted here.
const BUILD: &str =
    "When the file repalcements were made, the build provided the following output:\n";

/// The common beginning of all prompts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// `gemini-system-prompt.txt`.
    pub system: &'a str,
    /// `query.txt`.
    pub query: &'a str,
    /// `codeRollup.txt`.
    pub codebase: &'a str,
}

/// One reply and its result.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// The texts that the model wrote for itself (`%%%`).
    pub thoughts: &'a [&'a str],
    /// The files that it suggested, including fences, as it wrote them.
    pub files: &'a [&'a str],
    /// The output of the build, or why there was none.
    pub build: &'a str,
}

/// A prompt, and the positions of the three inputs in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialPrompt {
    /// The whole text.
    pub text: String,
    /// The byte range of the system prompt.
    pub system: Range<usize>,
    /// The byte range of the query.
    pub query: Range<usize>,
    /// The byte range of the codebase.
    pub codebase: Range<usize>,
}

/// `[gemini system prompt] [basic query] [codebase]`
#[must_use]
pub fn initial(task: &Task<'_>) -> InitialPrompt {
    let mut text =
        String::with_capacity(task.system.len() + task.query.len() + task.codebase.len() + 3);
    let [system, query, codebase] = [task.system, task.query, task.codebase].map(|part| {
        let start = text.len();
        push_last_part(&mut text, part);
        start..start + part.len()
    });
    InitialPrompt {
        text,
        system,
        query,
        codebase,
    }
}

/// Appends the exchange number `number`, counted from 1.
pub fn append(prompt: &mut String, number: u32, exchange: &Exchange<'_>) {
    prompt.push_str(if number == 1 {
        FIRST_ANSWER
    } else {
        NEXT_ANSWER
    });
    for part in exchange.thoughts.iter().chain(exchange.files) {
        push_last_part(prompt, part);
    }
    prompt.push_str(BUILD);
    push_last_part(prompt, exchange.build);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_prompt_teaches_is_what_the_parser_reads() {
        let (examples, no_change) = SYSTEM_PROMPT.split_once("Finally, if you wish").unwrap();
        let reply = code_commit_parser::parse(examples).unwrap();
        let files: Vec<_> = reply.files().map(|file| (file.path, file.action)).collect();
        assert_eq!(files.len(), 3);
        assert_eq!(
            files[1],
            ("src/unused.rs", code_commit_parser::FileAction::Delete)
        );
        let longer = "A file is written with\n^^^path\ncontent\n^^^end\n";
        assert_eq!(
            files[2],
            (
                "docs/fences.md",
                code_commit_parser::FileAction::Write(longer)
            )
        );
        assert_eq!((reply.user().count(), reply.debug().count()), (1, 1));
        assert_eq!(
            code_commit_parser::parse(no_change)
                .unwrap()
                .no_change()
                .count(),
            1
        );
    }

    #[test]
    fn the_transcript_has_the_words_and_the_order_of_the_seed() {
        let mut prompt = initial(&Task {
            system: "system",
            query: "query\n",
            codebase: "codebase",
        })
        .text;
        let thoughts = ["I guessed.\n"];
        let files = ["^^^a.rs\nfn a() {}\n^^^end\n"];
        append(
            &mut prompt,
            1,
            &Exchange {
                thoughts: &thoughts,
                files: &files,
                build: "no such type\nexit code: 101\n",
            },
        );
        append(
            &mut prompt,
            2,
            &Exchange {
                thoughts: &[],
                files: &files,
                build: "exit code: 1",
            },
        );
        insta::assert_snapshot!(prompt, @"
        system
        query
        codebase
        The above query was provided, and you provided the following data in your response
        I guessed.
        ^^^a.rs
        fn a() {}
        ^^^end
        When the file repalcements were made, the build provided the following output:
        no such type
        exit code: 101
        You then provided the following data in your subsequent response
        ^^^a.rs
        fn a() {}
        ^^^end
        When the file repalcements were made, the build provided the following output:
        exit code: 1
        ");
    }

    #[test]
    fn the_inputs_stand_where_the_prompt_says() {
        let prompt = initial(&Task {
            system: "system",
            query: "query\n",
            codebase: "codebase",
        });
        let InitialPrompt {
            text,
            system,
            query,
            codebase,
        } = prompt;
        let parts = [system, query, codebase].map(|place| text.get(place));
        assert_eq!(parts, [Some("system"), Some("query\n"), Some("codebase")]);
    }

    #[test]
    fn a_longer_transcript_begins_with_the_bytes_of_the_shorter_one() {
        let mut prompt = initial(&Task {
            system: "s",
            query: "q",
            codebase: "c",
        })
        .text;
        for number in 1..8 {
            let before = prompt.clone();
            append(
                &mut prompt,
                number,
                &Exchange {
                    thoughts: &["t"],
                    files: &["f"],
                    build: "b",
                },
            );
            assert!(prompt.starts_with(&before));
        }
    }
}
