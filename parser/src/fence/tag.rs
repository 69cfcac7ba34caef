//! The tags around thoughts that servers leave in an answer.
//!
//! They belong to the templates of models. A server that knows the template takes the thought out of
//! the answer; one that does not, or is told not to, sends both.

/// Each opening tag and its end.
pub(crate) const TAGS: [[&str; 2]; 16] = [
    ["<think>", "</think>"],
    ["<thinking>", "</thinking>"],
    ["<thought>", "</thought>"],
    ["<thoughts>", "</thoughts>"],
    ["<reasoning>", "</reasoning>"],
    ["<reflection>", "</reflection>"],
    ["<analysis>", "</analysis>"],
    ["<seed:think>", "</seed:think>"],
    ["<mm:think>", "</mm:think>"],
    ["[THINK]", "[/THINK]"],
    ["\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}"],
    ["<|START_THINKING|>", "<|END_THINKING|>"],
    // The answer begins behind a second token.
    ["<|START_THINKING|>", "<|START_RESPONSE|>"],
    ["<|begin_of_thought|>", "<|end_of_thought|>"],
    [
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
    ],
    [
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
    ],
];

/// Tokens that end a turn. Servers with another template than the model's leave them in the answer.
pub(crate) const TURN_ENDS: &str = "</s> <eos> <end_of_turn> <|end|> <|eot_id|> <|return|> <|im_end|> <|endoftext|> \
                                    <|end_of_text|> <|END_RESPONSE|> <\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>";

/// One of [`TAGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Of its pair, whether it is that or not.
    pub(crate) end: &'static str,
    pub(crate) ends: bool,
}

/// The tag that `rest` begins with, and its length.
pub(crate) fn at(rest: &[u8]) -> Option<(Tag, usize)> {
    // Most marks are fences. `◁` begins with the last of the three.
    rest.first()
        .filter(|first| [b'<', b'[', 0xe2].contains(first))?;
    TAGS.into_iter().find_map(|[opening, end]| {
        let tag = [end, opening]
            .into_iter()
            .find(|tag| rest.starts_with(tag.as_bytes()))?;
        Some((
            Tag {
                end,
                ends: tag == end,
            },
            tag.len(),
        ))
    })
}
