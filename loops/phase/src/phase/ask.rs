//! The prompt of a role.

use std::borrow::Cow;

use code_commit_prompt::phase::{Phase, Turn, builder, verifier};

use super::Work;
use crate::Role;

/// A prompt shows this much of the map, since it has to fit into the role's model; the file has all
/// of it.
const MAP_BYTES: usize = 64 << 10;

fn short(map: &str) -> Cow<'_, str> {
    if map.len() <= MAP_BYTES {
        return map.into();
    }
    let mut bytes = 0;
    let shown = map.split_inclusive('\n').take_while(|line| {
        bytes += line.len();
        bytes <= MAP_BYTES
    });
    let shown: String = shown.collect();
    let left = map.lines().count() - shown.lines().count();
    format!("{shown}… and {left} files more\n").into()
}

impl<H> Work<'_, H> {
    pub(super) fn prompt(&self, who: Role) -> String {
        let role = self.inputs.role(who);
        let phases: Vec<Phase<'_>> = self
            .specs
            .iter()
            .map(|spec| Phase {
                number: spec.number,
                title: &spec.title,
                completed: spec.completed,
                spec: &spec.text,
            })
            .collect();
        let turn = Turn {
            role: &role.prompt,
            project: self.inputs.project.as_deref(),
            phase: self.inputs.phase,
            iteration: self.iteration,
            iterations: self.inputs.iterations,
            workspace: &role.workspace,
            phases: &phases,
            commands: &role.commands,
            map: &short(&self.map),
            failures: self.failures.as_deref(),
        };
        match who {
            Role::Builder => builder(&turn),
            Role::Verifier => verifier(&turn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_fits_is_whole_and_a_longer_one_says_how_much_is_left_out() {
        assert_eq!(short("a\nb\n"), "a\nb\n");
        let long = "a-file-of-the-project.rs\n".repeat(10_000);
        let cut = short(&long);
        assert!(cut.len() <= MAP_BYTES + 40);
        let shown = cut.lines().count() - 1;
        assert!(
            cut.ends_with(&format!("\n… and {} files more\n", 10_000 - shown)),
            "{shown}"
        );
    }
}
