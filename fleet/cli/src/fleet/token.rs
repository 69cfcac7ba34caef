//! `token`.

use clap::{Subcommand, ValueEnum};
use code_commit_fleet_store::{Fence, Role, Store};

use crate::Exit;
use crate::print::Out;

/// Who may ask the gateway for what. Needs the database.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token, and print its secret, which is not kept
    Make {
        /// Whose it is: a worker, a person, a program
        name: String,
        /// What it is for
        #[arg(long, value_name = "ROLE")]
        role: For,
        /// Only for the orders of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// List tokens, without their secrets
    List,
    /// Refuse a token from now on
    Revoke {
        /// Whose it is
        name: String,
    },
}

/// The words for roles on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum For {
    /// Carry out orders, and nothing else
    Worker,
    /// Look
    Viewer,
    /// Look, submit, cancel and retry
    Submitter,
    /// All of that, and steer: caps, pauses, workers
    Operator,
}

impl Token {
    pub(crate) async fn run(&self, store: &Store, out: Out) -> anyhow::Result<Exit> {
        match self {
            Self::Make { name, role, tenant } => {
                let role = match role {
                    For::Worker => Role::Worker,
                    For::Viewer => Role::Viewer,
                    For::Submitter => Role::Submitter,
                    For::Operator => Role::Operator,
                };
                let secret = store.make_token(name, role, tenant.as_deref()).await?;
                let Some(secret) = secret else {
                    anyhow::bail!("there is a token of {name}; choose another name")
                };
                out.line(
                    &serde_json::json!({ "name": name, "role": role, "secret": secret }),
                    || secret.clone(),
                );
            }
            Self::List => {
                for token in store.tokens().await? {
                    let tenant = token
                        .tenant
                        .as_deref()
                        .map(|tenant| format!("  tenant {tenant}"));
                    let revoked = if token.is_revoked { "  revoked" } else { "" };
                    let words = || {
                        format!(
                            "{}  {}{}  {}{revoked}",
                            token.name,
                            token.role,
                            tenant.unwrap_or_default(),
                            token.made_at
                        )
                    };
                    out.line(&token, words);
                }
            }
            Self::Revoke { name } => {
                let was_there = store.revoke_token(name).await? == Fence::Held;
                let words = if was_there {
                    "is revoked"
                } else {
                    "has no valid token"
                };
                out.line(
                    &serde_json::json!({ "name": name, "done": was_there }),
                    || format!("{name} {words}"),
                );
                return Ok(if was_there { Exit::Done } else { Exit::Nothing });
            }
        }
        Ok(Exit::Done)
    }
}
