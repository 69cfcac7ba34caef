//! Runs `RUNG TREE PROGRAM [ARGUMENT…]` in the sandbox of a backend: for manual trials, and for the tests that
//! kill the harness itself.

#![expect(
    clippy::disallowed_methods,
    reason = "the whole program stands for the caller"
)]
#![expect(clippy::print_stdout, reason = "a program to be looked at")]

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use code_commit_runner::{Access, Cancel, Command, Env, Mode, helper, probe, run};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = helper() {
        return Ok(code);
    }
    let mut words = std::env::args_os().skip(1);
    let mut next = || {
        words
            .next()
            .ok_or("usage: hold RUNG TREE PROGRAM [ARGUMENT…]")
    };
    let mode = match next()?.to_str() {
        Some("namespaces") => Mode::Namespaces,
        Some("landlock") => Mode::Landlock,
        Some("docker") => Mode::Docker,
        Some("off") => Mode::Off,
        Some(_) | None => Mode::Auto,
    };
    let tree = PathBuf::from(next()?);
    let argv: Vec<OsString> = words.collect();
    let env = Env::allowed(std::env::vars_os(), &[]);
    let probed = probe(mode, std::env::var_os("DOCKER_HOST").as_deref())?;
    println!("sandbox: {}", probed.why);
    let access = probed.confine(Access::new(&tree, &env));
    let ended = run(
        &Command::new(argv, &tree, env),
        &access,
        &Cancel::new()?,
        &mut |_, bytes| {
            // Ignore EPIPE: the reader is gone.
            let _ = std::io::stdout().write_all(bytes);
        },
    )?;
    println!("the command {}", ended.ended);
    Ok(ExitCode::SUCCESS)
}
