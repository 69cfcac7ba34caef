//! Runs a program and says what it cost, as one JSON line in the file that `STOPWATCH_OUT` names:
//! `stopwatch PROGRAM [ARG…]`. It is small itself, because a program's peak memory begins with its starter's.

use std::error::Error;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// `struct rusage` of Linux on 64 bits: two times, then fourteen numbers.
#[repr(C)]
#[derive(Default)]
struct Usage {
    user: [i64; 2],
    system: [i64; 2],
    max_rss_kib: i64,
    rest: [i64; 13],
}

unsafe extern "C" {
    fn wait4(pid: i32, status: *mut i32, options: i32, usage: *mut Usage) -> i32;
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: STOPWATCH_OUT=FILE stopwatch PROGRAM [ARG…]")?;
    let out = std::env::var_os("STOPWATCH_OUT").ok_or("STOPWATCH_OUT is not set")?;
    let began_ns = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let began = Instant::now();
    let child = Command::new(program).args(args).env_remove("STOPWATCH_OUT").spawn()?;
    let (status, usage) = wait(i32::try_from(child.id())?)?;
    let wall_us = began.elapsed().as_micros();
    let micros = |time: [i64; 2]| time[0] * 1_000_000 + time[1];
    let line = format!(
        r#"{{"began_ns":{began_ns},"wall_us":{wall_us},"cpu_us":{},"rss_kib":{},"exit":{}}}"#,
        micros(usage.user) + micros(usage.system),
        usage.max_rss_kib,
        status.code().unwrap_or(-1),
    );
    Ok(fs::write(out, line)?)
}

/// The child's end, and what it and the children it has waited for have used.
fn wait(pid: i32) -> std::io::Result<(ExitStatus, Usage)> {
    let (mut status, mut usage) = (0, Usage::default());
    // SAFETY: both pointers are to live values of the layout that wait4 writes.
    if unsafe { wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
        Ok((ExitStatus::from_raw(status), usage))
    } else {
        Err(std::io::Error::last_os_error())
    }
}
