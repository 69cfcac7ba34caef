//! What a person sees: on terminals of three widths, with and without colour, and every error message.

mod errors;
mod records;
mod scene;
mod widths;
