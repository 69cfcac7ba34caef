//! A fleet to look at: one HTML file of batches, costs, caps and orders, beside the pages of these orders' runs.
//!
//! Takes rows of `store`, gives HTML in the style of the product's pages and under their policy: nothing is loaded, and only the
//! page's own style and script count. A run's page is the product's own, which makes it from the exported run.
//!
//! Limits: one row for each order, without pages of rows; a browser sorts some ten thousand of them at once.

mod fleet;
mod run;

pub use fleet::{Fleet, html};
pub use run::{Maker, name};
