#![doc = include_str!("../README.md")]

mod captured;
mod message;
mod pace;

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use code_commit_report::Output;
use code_commit_runner::Cancel;
use serde_json::{Value, json};

pub use captured::{Heard, captured};
use message::Message;
pub use message::{Params, RpcError};
pub use pace::Pace;

/// A longer message is not read: it is hostile, or a mistake.
pub const MOST_BYTES: usize = 8 << 20;
/// Calls that wait, at most.
const MOST_WAITING: usize = 64;
/// How long a question waits before it looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(50);

/// A request of the other side.
#[derive(Debug, Clone)]
pub struct Call {
    id: Value,
    /// What is asked for.
    pub method: String,
    /// Its parameters; empty if it has none.
    pub params: Params,
    /// Raised when the other side takes the request back or goes away, and by Ctrl-C.
    pub cancel: Cancel,
}

/// A result or an error. `None`: a reader passes the call on to the worker; the worker answers nothing, since the call was
/// taken back.
pub type Answer = Option<Result<Value, RpcError>>;

/// What is answered while the worker is busy.
pub trait Reader: Send {
    /// Answers at once, or passes the call on.
    fn call(&mut self, call: &Call) -> Answer;
    /// Hears a notification.
    fn notified(&mut self, method: &str, params: &Params);
    /// Its answer to a call was sent.
    fn answered(&mut self, _call: &Call, _answer: &Value) {}
}

/// The other side, as far as we write to it. Clones write to the same one, a message at a time.
#[derive(Debug, Clone)]
pub struct Peer {
    output: Output,
    shared: Arc<Mutex<Shared>>,
    work: Sender<Option<Call>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Calls that wait or are at work.
    calls: Vec<Call>,
    /// Our own requests that are not answered yet.
    asked: HashMap<u64, Sender<Result<Value, RpcError>>>,
    requests: u64,
    is_closing: bool,
}

impl Peer {
    /// Writes to the standard output of `output`, which redacts keys. Gives what the worker takes its calls from.
    pub fn new(output: &Output) -> (Self, Work) {
        let (work, calls) = channel();
        let mut output = output.clone();
        output.json = true;
        let peer = Self {
            output,
            shared: Arc::default(),
            work,
        };
        (peer, Work(calls))
    }

    /// What is printed where the protocol has no place for it.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    /// Asks the other side, and waits for its answer until `cancel` is raised.
    pub fn ask(&self, method: &str, params: &Value, cancel: &Cancel) -> Result<Value, RpcError> {
        let (answered, answer) = channel();
        let mut shared = self.shared();
        shared.requests += 1;
        let id = shared.requests;
        shared.asked.insert(id, answered);
        drop(shared);
        self.send(json!({ "id": id, "method": method, "params": params }));
        loop {
            if let Ok(answer) = answer.recv_timeout(POLL) {
                return answer;
            }
            if cancel.is_set() {
                self.shared().asked.remove(&id);
                return Err(RpcError::cancelled());
            }
        }
    }

    /// Whether a call waits or is at work.
    pub fn is_busy(&self) -> bool {
        !self.shared().calls.is_empty()
    }

    /// Raises the flags of the calls that match.
    pub fn cancel(&self, is_meant: impl Fn(&Call) -> bool) {
        let shared = self.shared();
        let meant = shared.calls.iter().filter(|call| is_meant(call));
        meant.for_each(|call| call.cancel.set());
    }

    /// Raises the flags of this call's request, named by its identifier.
    pub fn cancel_request(&self, id: &Value) {
        self.cancel(|call| call.id == *id);
    }

    /// Stops all calls; the worker ends after those that it has begun or that wait. `false` if that is under way already.
    pub fn close(&self) -> bool {
        let was_closing = std::mem::replace(&mut self.shared().is_closing, true);
        self.cancel(|_| true);
        // Without a worker there is nothing to end.
        let _ = self.work.send(None);
        !was_closing
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, mut message: Value) {
        if let Some(message) = message.as_object_mut() {
            message.insert("jsonrpc".to_owned(), json!("2.0"));
        }
        self.output.object(&message);
    }

    fn answer(&self, id: &Value, answer: Result<Value, RpcError>) {
        self.send(match answer {
            Ok(result) => json!({ "id": id, "result": result }),
            Err(error) => json!({ "id": id, "error": error }),
        });
    }

    /// Reads until the input ends; a wrong message is answered with an error and never ends anything.
    pub fn read(&self, mut input: impl BufRead, reader: &mut dyn Reader) {
        loop {
            let (mut line, most) = (Vec::new(), MOST_BYTES as u64 + 1);
            let read = io::Read::take(&mut input, most).read_until(b'\n', &mut line);
            if !read.is_ok_and(|bytes| bytes > 0) {
                break;
            }
            if line.len() > MOST_BYTES && !line.ends_with(b"\n") {
                // Whatever cannot be skipped cannot be read either.
                let _ = input.skip_until(b'\n');
                self.answer(&Value::Null, Err(RpcError::too_long()));
            } else if !line.trim_ascii().is_empty() {
                self.take(&line, reader);
            }
        }
        self.close();
    }

    fn take(&self, line: &[u8], reader: &mut dyn Reader) {
        match Message::parse(line) {
            Message::Wrong(id, error) => self.answer(&id, Err(error)),
            Message::Notification(method, params) => {
                let notified = AssertUnwindSafe(|| reader.notified(&method, &params));
                // It was printed, and a notification has no answer.
                let _ = catch_unwind(notified);
            }
            Message::Response(id, answer) => {
                let asked = id.as_u64().and_then(|id| self.shared().asked.remove(&id));
                // Nobody waits for an answer that comes too late.
                let _ = asked.map(|asked| asked.send(answer));
            }
            Message::Request(id, method, params) => self.begin(id, method, params, reader),
        }
    }

    fn begin(&self, id: Value, method: String, params: Params, reader: &mut dyn Reader) {
        let Ok(cancel) = Cancel::new() else {
            return self.answer(&id, Err(RpcError::busy()));
        };
        let call = Call {
            id,
            method,
            params,
            cancel,
        };
        if let Some(answer) = or_internal(|| reader.call(&call)) {
            self.answer(&call.id, answer.clone());
            return answer
                .iter()
                .for_each(|result| reader.answered(&call, result));
        }
        let mut shared = self.shared();
        if shared.calls.len() >= MOST_WAITING {
            drop(shared);
            return self.answer(&call.id, Err(RpcError::busy()));
        }
        if shared.calls.iter().any(|other| other.id == call.id) {
            drop(shared);
            let error =
                RpcError::invalid_request("this id belongs to a request that is not answered yet");
            return self.answer(&call.id, Err(error));
        }
        shared.calls.push(call.clone());
        drop(shared);
        // Without a worker nobody reads answers.
        let _ = self.work.send(Some(call));
    }
}

/// Serves standard input until it ends, or until a signal or the other side closes the peer.
pub fn serve(
    peer: &Peer,
    work: Work,
    mut reader: impl Reader + 'static,
    worker: impl FnMut(&Call) -> Answer,
) -> io::Result<()> {
    let reads = peer.clone();
    // Not joined: it may wait for a line that never comes.
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || reads.read(io::stdin().lock(), &mut reader))?;
    work.each(peer, worker);
    Ok(())
}

/// The calls that no reader has answered.
#[derive(Debug)]
pub struct Work(Receiver<Option<Call>>);

impl Work {
    /// Answers one call after the other, until the peer closes.
    pub fn each(self, peer: &Peer, mut work: impl FnMut(&Call) -> Answer) {
        while let Ok(Some(call)) = self.0.recv() {
            if peer.shared().is_closing {
                call.cancel.set();
            }
            let answer = or_internal(|| work(&call));
            peer.shared().calls.retain(|other| other.id != call.id);
            if let Some(answer) = answer {
                peer.answer(&call.id, answer);
            }
        }
    }
}

fn or_internal(answer: impl FnOnce() -> Answer) -> Answer {
    // The panic was printed on standard error.
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| Some(Err(RpcError::internal())))
}
