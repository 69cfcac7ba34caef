//! A client of the program's servers, without any library.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// A message that does not come within this time never comes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that was started, and what it has sent. Dropping it ends the server.
pub struct Client {
    pub child: Child,
    input: Option<ChildStdin>,
    sent: Receiver<Value>,
    /// Notifications and requests of the server that came while a response was waited for.
    pub heard: Vec<Value>,
    id: u64,
}

impl Client {
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, sent) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Standard output holds messages and nothing else.
                if send.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            sent,
            heard: Vec::new(),
            id: 0,
        }
    }

    pub fn send_bytes(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request without waiting; gives its id.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }));
        self.id
    }

    /// The next message.
    pub fn next(&mut self) -> Value {
        self.sent.recv_timeout(PATIENCE).unwrap()
    }

    /// The response to this request; everything else is kept in `heard`.
    pub fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// The result of a request, or its error.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        let response = self.response(id);
        match response.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(response["result"].clone()),
        }
    }

    /// Waits for a notification or a request of the server for which this holds.
    pub fn hear(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&is_it) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.next();
            if is_it(&message) {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Ends its input; gives its exit code.
    pub fn end(&mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
