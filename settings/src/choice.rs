//! Settings that are one of a few words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::slot::in_force;

/// An enum whose variants are written as words: in files, on the command line and in the record.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $(#[doc = $help:literal] $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $(#[doc = $help] #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every word and what it means.
            pub const WORDS: &[(&'static str, &'static str)] = &[$(($word, $help)),*];

            /// The word.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        in_force!($name as $name, |choice| choice, |choice| json!(choice.as_str()));

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("`{text}` is none of: {}", [$($word),*].join(", "))),
                }
            }
        }
    };
}

choice! {
    /// The sandbox around the build.
    Sandbox {
        /// The strongest that works here; refuse if none does
        Auto = "auto",
        /// Namespaces and seccomp
        Namespaces = "namespaces",
        /// Landlock and seccomp
        Landlock = "landlock",
        /// A container
        Docker = "docker",
        /// No sandbox: the build can do whatever you can
        Off = "off",
    }
}

choice! {
    /// What a checkpoint commits.
    CommitScope {
        /// Everything that differs, as `git add -A` does.
        All = "all",
        /// What the agents of the run changed.
        Run = "run",
    }
}

choice! {
    /// What becomes of the changes of an order's commands outside of its files.
    Byproducts {
        /// They are put back when the order passes.
        Restore = "restore",
        /// They stay.
        Keep = "keep",
    }
}

choice! {
    /// The name of the output limit.
    OutputLimit {
        /// The name in OpenAI's own service.
        MaxCompletionTokens = "max_completion_tokens",
        /// The name that many local servers know.
        MaxTokens = "max_tokens",
    }
}

choice! {
    /// The role of the system instruction.
    SystemRole {
        /// The role in OpenAI's own service.
        Developer = "developer",
        /// The role in all other services.
        System = "system",
    }
}
