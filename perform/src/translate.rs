//! Translates types of the acting crates to those of `engine`.

use code_commit_engine::{Action, Answered, Cause, Changed, Ended, Finish, Problem, Reply, Usage};
use code_commit_llm::{Advice, Filter};
use code_commit_logging::{FolderError, RunFolder};

use crate::record::to_logging;

pub(crate) fn ended(ended: code_commit_runner::Ended) -> Ended {
    match ended {
        code_commit_runner::Ended::Exited(code) => Ended::Exited(code),
        code_commit_runner::Ended::Signaled(signal) => Ended::Signaled(signal),
        code_commit_runner::Ended::TimedOut => Ended::TimedOut,
        code_commit_runner::Ended::TooMuchOutput => Ended::TooMuchOutput,
        code_commit_runner::Ended::TooMuchMemory => Ended::TooMuchMemory,
        code_commit_runner::Ended::TooManyProcesses => Ended::TooManyProcesses,
        code_commit_runner::Ended::NotFound => Ended::NotFound,
        code_commit_runner::Ended::NotExecutable => Ended::NotExecutable,
        code_commit_runner::Ended::Interrupted | _ => Ended::Interrupted,
    }
}

/// The changes of a reply.
pub fn changes(changes: Vec<code_commit_apply::Changed>) -> Vec<Changed> {
    let changed = |change: code_commit_apply::Changed| Changed {
        path: change.path,
        action: match change.action {
            code_commit_apply::Action::Write => Action::Write,
            code_commit_apply::Action::Delete => Action::Delete,
            code_commit_apply::Action::None => Action::None,
        },
        before_sha256: change.before_sha256,
        after_sha256: change.after_sha256,
        created: change.created,
        before_mode: change.before_mode,
        after_mode: change.after_mode,
    };
    changes.into_iter().map(changed).collect()
}

pub(crate) fn untidy(warning: &code_commit_apply::Warning) -> Problem {
    Problem::new("apply", format!("{warning}."))
}

/// What an attempt used, as the record has it.
pub fn engine_usage(usage: code_commit_llm::Usage) -> Usage {
    let code_commit_llm::Usage {
        input_tokens,
        cache_read_tokens,
        cache_write_tokens,
        output_tokens,
        reasoning_tokens,
    } = usage;
    Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens }
}

/// Recorded tokens, as input for pricing.
pub fn client_usage(usage: Usage) -> code_commit_llm::Usage {
    let Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens } =
        usage;
    code_commit_llm::Usage {
        input_tokens,
        cache_read_tokens,
        cache_write_tokens,
        output_tokens,
        reasoning_tokens,
    }
}

/// A recorded answer in the form that the model's client gave it, for reuse.
///
/// # Errors
///
/// Fails if its text has changed.
pub fn reply_again(folder: &RunFolder, answered: &Answered) -> Result<code_commit_llm::Reply, FolderError> {
    let text = folder.recall(&to_logging(&answered.reply.stored))?;
    let finish = finish_of(&answered.reply());
    let usage = client_usage(answered.usage);
    let served_model = answered.served_model.clone();
    Ok(code_commit_llm::Reply { finish, usage, served_model, ..code_commit_llm::Reply::of_text(text) })
}

/// How an answer ended, and the cause if the user has to act.
pub(crate) fn finish(finish: &code_commit_llm::Finish) -> (Finish, Option<Cause>) {
    let for_person = (finish.advice() == Advice::TellPerson).then(|| Cause {
        code: finish.code().to_owned(),
        message: finish.explain(),
        remedy: Some(finish.hint().to_owned()),
    });
    (Finish(serde_json::to_value(finish).unwrap_or_default()), for_person)
}

/// How the judged answer ended. An unreadable end counts as incomplete.
pub(crate) fn finish_of(reply: &Reply) -> code_commit_llm::Finish {
    let unknown = |_| code_commit_llm::Finish::Filtered { filter: Filter::Unspecified };
    serde_json::from_value(reply.finish.0.clone()).unwrap_or_else(unknown)
}

/// A reply without a model call: given as text, or tried in place of a recorded one.
pub fn reply_of(text: &str) -> Reply {
    let (finish, _) = finish(&code_commit_llm::Finish::Complete);
    Reply { text: text.into(), finish, held_key: false }
}
