//! The words of the crates that act, in those of `engine`.

use engine::{Action, Answered, Cause, Changed, Ended, Finish, Problem, Reply, Usage};
use llm::{Advice, Filter};
use logging::{FolderError, RunFolder};

use crate::record::to_logging;

/// How a command ended.
pub(crate) fn ended(ended: runner::Ended) -> Ended {
    match ended {
        runner::Ended::Exited(code) => Ended::Exited(code),
        runner::Ended::Signaled(signal) => Ended::Signaled(signal),
        runner::Ended::TimedOut => Ended::TimedOut,
        runner::Ended::TooMuchOutput => Ended::TooMuchOutput,
        runner::Ended::NotFound => Ended::NotFound,
        runner::Ended::NotExecutable => Ended::NotExecutable,
        runner::Ended::Interrupted | _ => Ended::Interrupted,
    }
}

/// What became of the files of a reply.
pub fn changes(changes: Vec<apply::Changed>) -> Vec<Changed> {
    let changed = |change: apply::Changed| Changed {
        path: change.path,
        action: match change.action {
            apply::Action::Write => Action::Write,
            apply::Action::Delete => Action::Delete,
            apply::Action::None => Action::None,
        },
        before_sha256: change.before_sha256,
        after_sha256: change.after_sha256,
        created: change.created,
        before_mode: change.before_mode,
        after_mode: change.after_mode,
    };
    changes.into_iter().map(changed).collect()
}

/// A warning of a transaction that was committed all the same.
pub(crate) fn untidy(warning: &apply::Warning) -> Problem {
    Problem::new("apply", format!("{warning}."))
}

/// Tokens.
pub(crate) fn usage(usage: llm::Usage) -> Usage {
    let llm::Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens } =
        usage;
    Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens }
}

/// Recorded tokens, as prices are reckoned from them.
pub fn client_usage(usage: Usage) -> llm::Usage {
    let Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens } =
        usage;
    llm::Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens }
}

/// A recorded answer as the client of a model gave it, to be given again.
///
/// # Errors
///
/// Fails where its text is not what it was.
pub fn reply_again(folder: &RunFolder, answered: &Answered) -> Result<llm::Reply, FolderError> {
    let text = folder.recall(&to_logging(&answered.reply.stored))?;
    let finish = finish_of(&answered.reply());
    let usage = client_usage(answered.usage);
    let served_model = answered.served_model.clone();
    Ok(llm::Reply { finish, usage, served_model, ..llm::Reply::of_text(text) })
}

/// How an answer ended, and what to tell the person where only a person can do something about it.
pub(crate) fn finish(finish: &llm::Finish) -> (Finish, Option<Cause>) {
    let for_person = (finish.advice() == Advice::TellPerson).then(|| Cause {
        code: finish.code().to_owned(),
        message: finish.explain(),
        remedy: Some(finish.hint().to_owned()),
    });
    (Finish(serde_json::to_value(finish).unwrap_or_default()), for_person)
}

/// How the answer ended that is judged. What cannot be read is not a complete answer.
pub(crate) fn finish_of(reply: &Reply) -> llm::Finish {
    let unknown = |_| llm::Finish::Filtered { filter: Filter::Unspecified };
    serde_json::from_value(reply.finish.0.clone()).unwrap_or_else(unknown)
}

/// A reply that was not asked for: given as text, or tried in place of a recorded one.
pub fn reply_of(text: &str) -> Reply {
    let (finish, _) = finish(&llm::Finish::Complete);
    Reply { text: text.into(), finish, held_key: false }
}
