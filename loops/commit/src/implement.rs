//! The first loop: up to eight rounds over a transcript that grows (S0).

use std::sync::Arc;

use code_commit_engine::{Apply, Ask, Build, BuildBaseline, Harness, Outcome, Present, Restore};
use code_commit_parser::fence::Kind;
use code_commit_prompt::implement::{Exchange, Task, append, initial};

use crate::rounds::{self, Conversation, Limits};

/// Model calls of one run (S0: "a maximum of 8 times").
pub const IMPLEMENT_ROUNDS: u32 = 8;

/// What a run is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// `gemini-system-prompt.txt`.
    pub system: Arc<str>,
    /// What the user asks for.
    pub query: Arc<str>,
    /// `codeRollup.txt`.
    pub codebase: Arc<str>,
}

/// S0: the same over a transcript that grows.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn implement<H>(harness: &mut H, brief: &Brief, limits: &Limits) -> Result<Outcome, H::Stop>
where
    H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<BuildBaseline> + Harness<Restore>,
{
    let Brief {
        system,
        query,
        codebase,
    } = brief;
    let text = initial(&Task {
        system,
        query,
        codebase,
    })
    .text;
    rounds::run(harness, &mut Transcript { text, exchanges: 0 }, limits)
}

/// Everything that was said so far, in the words of the seed.
struct Transcript {
    text: String,
    exchanges: u32,
}

impl Conversation for Transcript {
    fn first(&self) -> String {
        self.text.clone()
    }

    /// Nothing of a transcript changes: it begins with the first prompt.
    fn stable(&self) -> usize {
        self.text.len()
    }

    fn applied(&mut self, _reply: &Arc<str>, _edited: &[Present]) {}

    /// A transcript holds what the model said and what the build printed (S0 §Implementation Details).
    fn rebuilt(&mut self, _file: &Present) -> bool {
        false
    }

    fn show(&mut self, Present { path, text }: &Present) -> String {
        format!(
            "[code-commit] `{path}` as it is now:\n{}\n",
            text.as_str().trim_end_matches('\n')
        )
    }

    fn built(&mut self, reply: &Arc<str>, output: &str) -> String {
        self.exchanges += 1;
        let said = Said::of(reply);
        let exchange = Exchange {
            thoughts: &said.thoughts,
            files: &said.files,
            build: output,
        };
        append(&mut self.text, self.exchanges, &exchange);
        self.text.clone()
    }

    /// S0 presents it as a build error; the outputs of earlier builds stand in the transcript.
    fn refused(&mut self, reply: &Arc<str>, reasons: &str) -> String {
        self.built(reply, reasons)
    }
}

/// What of a reply goes into the transcript; of a bad reply, what could be made out.
struct Said<'r> {
    thoughts: Vec<&'r str>,
    files: Vec<&'r str>,
}

impl<'r> Said<'r> {
    fn of(reply: &'r str) -> Self {
        let blocks = match code_commit_parser::parse(reply) {
            Ok(parsed) => parsed.blocks().to_vec(),
            Err(errors) => errors.salvage().to_vec(),
        };
        let of_kind = |kind: Kind| blocks.iter().filter(move |block| block.ask.kind() == kind);
        Self {
            thoughts: of_kind(Kind::Debug)
                .filter_map(|block| reply.get(block.content.clone()))
                .collect(),
            files: of_kind(Kind::File)
                .filter_map(|block| reply.get(block.span.clone()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second_prompt(reply: &str) -> String {
        let mut transcript = Transcript {
            text: "Q\n".to_owned(),
            exchanges: 0,
        };
        transcript.built(&reply.into(), "exit code: 1\n")
    }

    #[test]
    fn thoughts_and_files_stand_in_the_transcript_and_words_for_the_person_do_not() {
        let reply = "prose\n^^^a\none\n^^^end\n&&&start\nfor you\n&&&end\n%%%start\nI guessed.\n%%%end\n^^^b\n^^^delete\n";
        insta::assert_snapshot!(second_prompt(reply), @"
        Q
        The above query was provided, and you provided the following data in your response
        I guessed.
        ^^^a
        one
        ^^^end
        ^^^b
        ^^^delete
        When the file repalcements were made, the build provided the following output:
        exit code: 1
        ");
    }

    #[test]
    fn of_a_bad_reply_what_could_be_made_out_stays() {
        let prompt = second_prompt("%%%start\nI guessed.\n%%%end\n^^^a\none\n");
        assert!(prompt.contains("\nI guessed.\n"), "{prompt}");
    }
}
