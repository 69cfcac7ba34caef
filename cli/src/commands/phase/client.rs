//! `abl-cmd NAME [ARGS…]`: runs in the sandbox and calls the desk outside it.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use code_commit_runs::phase::request::{Answer, Request, SOCKET};
use code_commit_settings::Environment;

/// Passes its arguments on and prints the answer. The exit code is the command's.
pub fn run(environment: &Environment) -> u8 {
    let argv = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let answer = environment
        .text(SOCKET)
        .ok_or_else(|| {
            io::Error::other(format!("{SOCKET} is not set: abl-cmd works for the roles of a phase only"))
        })
        .and_then(|socket| ask(socket, &Request { argv }));
    match answer {
        Ok(answer) => {
            // Ignore EPIPE: the reader is gone.
            let _ = io::stdout().lock().write_all(answer.output.as_bytes());
            answer.code
        }
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "abl-cmd: {error}");
            125
        }
    }
}

fn ask(socket: &str, request: &Request) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    serde_json::to_writer(&stream, request)?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
