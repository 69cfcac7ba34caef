//! The build alone, without a model: can a run work here at all?

use code_commit_engine::{Build, Built, Cause, Harness};

/// What the build says about the tree as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    /// It passes.
    Green,
    /// It fails because of the code, as far as anybody can tell.
    Red,
    /// It could not do its work: the machine or the project lacks something.
    Unfit(Cause),
}

/// Builds the tree as it is, in a harness that lets nothing stay of what the build changes but ignored files. `round`
/// names the files of its record.
///
/// # Errors
///
/// What stopped the harness.
pub fn check<H: Harness<Build>>(harness: &mut H, round: u32) -> Result<(Fitness, Built), H::Stop> {
    let built = harness.perform(Build { round })?;
    let fitness = match &built.lack {
        _ if built.passed() => Fitness::Green,
        Some(cause) => Fitness::Unfit(cause.clone()),
        None => Fitness::Red,
    };
    Ok((fitness, built))
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{Ended, Scripted, Text};

    use super::*;

    fn built(code: i32, lack: Option<Cause>) -> Built {
        Built {
            round: 1,
            ended: Ended::Exited(code),
            seal_broken: false,
            output: Text::in_file("f", "printed\n"),
            elapsed_ms: 1,
            changes: Vec::new(),
            present: Vec::new(),
            put_back: Vec::new(),
            lack,
            hints: String::new(),
            ignored_bytes: 0,
        }
    }

    #[test]
    fn each_end_of_a_build_has_its_verdict() {
        let cause = Cause {
            code: "tool-missing".to_owned(),
            message: "no mvn".to_owned(),
            remedy: None,
        };
        let verdict = |built: Built| check(&mut Scripted::default().then(built), 1).unwrap().0;
        assert_eq!(verdict(built(0, None)), Fitness::Green);
        assert_eq!(verdict(built(1, None)), Fitness::Red);
        assert_eq!(
            verdict(built(127, Some(cause.clone()))),
            Fitness::Unfit(cause)
        );
        assert_eq!(
            verdict(Built {
                seal_broken: true,
                ..built(0, None)
            }),
            Fitness::Red
        );
    }
}
