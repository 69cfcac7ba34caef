#![doc = include_str!("../README.md")]

mod chat;
mod responses;
mod switches;

use code_commit_llm::http::Post;
use code_commit_llm::json::{self, Aside};
use code_commit_llm::{Service, clean_message};
use serde::Deserialize;

pub use chat::OpenAi;
pub use code_commit_llm::prelude::*;
pub use responses::Responses;
pub use switches::Switches;

/// A request at `path` of the server.
fn post(service: &Service, path: &str, body: Vec<u8>) -> Post {
    service.post(path, ("authorization", "Bearer "), body)
}

/// Looks for the model in the list of all, which every server has and none bills.
fn find_model(body: &[u8], service: &Service) -> Result<(), CallError> {
    const SHOWN: usize = 10;
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Listed {
        id: Aside,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Models {
        data: Option<Vec<Listed>>,
    }
    let list: Models = json::object(body)?;
    let ids = list
        .data
        .iter()
        .flatten()
        .filter_map(|listed| listed.id.as_str());
    let ids: Vec<&str> = ids.collect();
    if ids.contains(&service.id.name()) {
        return Ok(());
    }
    let some: Vec<&str> = ids.into_iter().take(SHOWN).collect();
    let message = format!("the server has {}", some.join(", "));
    Err(CallError::NotFound {
        model: service.id.name().to_owned(),
        message: clean_message(&message, &service.key),
    })
}
