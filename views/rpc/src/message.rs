//! One message: what it may look like, and what is said of any other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An error in answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    /// As JSON-RPC or the protocol numbers it.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// What the protocol adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error with this code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Nothing here has this method.
    pub fn no_method(method: &str) -> Self {
        let name: String = method.chars().take(100).collect();
        Self::new(-32601, format!("there is no method {name}"))
    }

    /// Parameters that do not fit the method.
    pub fn invalid_params(why: impl Into<String>) -> Self {
        Self::new(-32602, why)
    }

    pub(crate) fn invalid_request(why: &str) -> Self {
        Self::new(-32600, why)
    }

    pub(crate) fn too_long() -> Self {
        let most = crate::MOST_BYTES >> 20;
        Self::invalid_request(&format!("a message has at most {most} MiB"))
    }

    pub(crate) fn busy() -> Self {
        Self::new(-32000, "too many requests wait already")
    }

    /// The request was taken back.
    pub(crate) fn cancelled() -> Self {
        Self::new(-32800, "the request was cancelled")
    }

    pub(crate) fn internal() -> Self {
        Self::new(-32603, "internal error; please report this")
    }
}

/// The parameters of a request or a notification.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params(pub(crate) Map<String, Value>);

impl Params {
    /// As the method wants them.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        serde_json::from_value(Value::Object(self.0.clone()))
            .map_err(|error| RpcError::invalid_params(error.to_string()))
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// One that has to be a text.
    pub fn text(&self, name: &str) -> Result<&str, RpcError> {
        let text = self.get(name).and_then(Value::as_str);
        text.ok_or_else(|| RpcError::invalid_params(format!("{name} has to be a text")))
    }

    /// One of the `_meta` entries, which protocols reserve for themselves.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.0.get("_meta")?.get(name)
    }
}

pub(crate) enum Message {
    Request(Value, String, Params),
    Notification(String, Params),
    /// An answer to a request of ours.
    Response(Value, Result<Value, RpcError>),
    /// With the identifier that the answer gets.
    Wrong(Value, RpcError),
}

impl Message {
    pub(crate) fn parse(line: &[u8]) -> Self {
        let wrong = |id, why: &str| Self::Wrong(id, RpcError::invalid_request(why));
        let mut object = match serde_json::from_slice(line) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return wrong(Value::Null, "a message is one object; there are no batches"),
            Err(error) => {
                let error = RpcError::new(-32700, format!("the line is not JSON: {error}"));
                return Self::Wrong(Value::Null, error);
            }
        };
        let id = object.remove("id");
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
        let known = id.clone().filter(is_id).unwrap_or_default();
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return wrong(known, "\"jsonrpc\" has to be \"2.0\"");
        }
        let method = match object.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return wrong(known, "a method is a string"),
            None => return Self::response(known, object),
        };
        let params = match object.remove("params") {
            Some(Value::Object(params)) => Params(params),
            None | Some(Value::Null) => Params::default(),
            Some(_) => {
                return Self::Wrong(known, RpcError::invalid_params("parameters are an object"));
            }
        };
        match id {
            None => Self::Notification(method, params),
            Some(id) if is_id(&id) => Self::Request(id, method, params),
            Some(_) => wrong(Value::Null, "an id is a string or a whole number"),
        }
    }

    fn response(id: Value, mut object: Map<String, Value>) -> Self {
        match (object.remove("result"), object.remove("error")) {
            (Some(result), None) if !id.is_null() => Self::Response(id, Ok(result)),
            (None, Some(error)) => {
                let error = serde_json::from_value(error);
                Self::Response(id, Err(error.unwrap_or_else(|_| RpcError::internal())))
            }
            _ => Self::Wrong(
                id,
                RpcError::invalid_request("a message has a method, a result or an error"),
            ),
        }
    }
}
