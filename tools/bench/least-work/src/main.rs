//! The least that any harness must do for the two-round task: read two files, ask the model, put its file into place
//! durably, run the build, and once more with what the build said. No checks, no records, no confinement: this is
//! the floor that `code-commit` is measured against, not a program to use.
//!
//! `least-work FOLDER HOST:PORT`

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

const ROUNDS: usize = 4;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(address)) = (args.next(), args.next()) else {
        return Err("usage: least-work FOLDER HOST:PORT".into());
    };
    let folder = Path::new(&folder);
    let query = fs::read_to_string(folder.join("agent-config/query.txt"))?;
    let code = fs::read_to_string(folder.join("agent-config/codeRollup.txt"))?;
    let mut prompt = format!("{query}\n{code}");
    for _ in 0..ROUNDS {
        let body = ask(&address, &prompt)?;
        let reply = content(&body).ok_or("the answer has no content")?;
        let (path, text) = file(&reply).ok_or("the answer has no file")?;
        write(&folder.join(path), text)?;
        let build = Command::new("sh").arg("build.sh").current_dir(folder).stdin(Stdio::null()).output()?;
        if build.status.success() {
            return Ok(ExitCode::SUCCESS);
        }
        prompt = format!("{query}\n{code}\n{}", String::from_utf8_lossy(&build.stdout));
    }
    Ok(ExitCode::FAILURE)
}

/// One connection, one POST, the body of its answer.
fn ask(address: &str, prompt: &str) -> io::Result<String> {
    let body = format!(r#"{{"model":"bench","messages":[{{"role":"user","content":{}}}]}}"#, quoted(prompt));
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())?;
    read_answer(&mut stream)
}

/// The body, by its content-length: the service may keep the connection open.
fn read_answer(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if count == 0
                || length.and_then(|length| length.parse().ok()).is_some_and(|n: usize| body.len() >= n)
            {
                return Ok(body.to_owned());
            }
        } else if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The first string named `content`, its escapes undone; `\u` is not among those that the bench's replies need.
fn content(body: &str) -> Option<String> {
    let mut chars = body.split_once("\"content\":\"")?.1.chars();
    let mut out = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'u' => return None,
                c => c,
            }),
            c => out.push(c),
        }
    }
}

/// Name and content of the first fenced file.
fn file(reply: &str) -> Option<(&str, &str)> {
    let (_, rest) = reply.split_once("^^^")?;
    let (path, rest) = rest.split_once('\n')?;
    Some((path, &rest[..rest.find("^^^end")?]))
}

/// Through a temporary file, so that it is the old or the new one whatever happens.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
