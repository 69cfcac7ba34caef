//! The sandbox around the desk: what its commands start lives as long as the role's turn, and no longer.
//!
//! There are two processes, both of this program: one outside, which ends when its harness closes the desk or
//! dies, and one inside, which serves. When the one outside ends, everything inside dies with the sandbox.

use std::io::{self, Read, Write};
use std::path::Path;
use std::thread;

use runner::{Cancel, Command, Confinement, Output, RunError, run};

use super::{Desk, FAILED, NAME, READY, WITHOUT_VIEW};

/// Runs the desk in its sandbox until `input` ends. Where the system allows no view of the source, the source is
/// read-only.
pub(super) fn serve_inside(
    mut desk: Desk,
    mut confinement: Confinement,
    mut input: impl Read + Send,
    mut answer: impl Write,
) -> io::Result<()> {
    let cancel = Cancel::new()?;
    desk.is_inside = true;
    // Not in a folder that a role sees: it holds the shell lines.
    let folder = runner::temporary_folder(Path::new("/tmp"))?;
    let orders = folder.path().join("desk.json");
    dir::replace(&orders, &serde_json::to_vec(&desk)?)?;
    let program = desk.socket.with_file_name(NAME);
    let command = Command { input: Some(orders), ..Command::new([program], &desk.cwd, desk.env()) };
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut input, &mut io::sink());
            cancel.set();
        });
        let mut served = serve(&command, &confinement, &cancel, &mut answer);
        if matches!(served, Err(RunError::View { .. })) {
            confinement.access.view = None;
            confinement.access.read_only.push(confinement.access.tree.clone());
            writeln!(answer, "{WITHOUT_VIEW}")?;
            served = serve(&command, &confinement, &cancel, &mut answer);
        }
        let why = match served {
            Ok(_) if cancel.is_set() => return Ok(()),
            Ok(output) => format!("it {}: {}", output.ended, output.text()),
            Err(error) => error.to_string(),
        };
        // The harness waits for a word.
        writeln!(answer, "{FAILED}{}", why.replace('\n', " "))?;
        answer.flush()
    })
}

fn serve(
    command: &Command,
    confinement: &Confinement,
    cancel: &Cancel,
    answer: &mut impl Write,
) -> Result<Output, RunError> {
    run(command, confinement, cancel, &mut |_, bytes| {
        if bytes.trim_ascii() == READY.as_bytes() {
            let _ = answer.write_all(bytes).and_then(|()| answer.flush());
        }
    })
}
