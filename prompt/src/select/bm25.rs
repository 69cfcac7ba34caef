//! BM25: how well documents fit the words of a query.

/// The usual constants of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

use super::given::Counts;
use super::rank::{add, at_of};

/// A document: how much of each word it holds, and its length in words.
#[derive(Debug, Default, Clone)]
pub(crate) struct Document {
    counts: Counts,
    pub length: f64,
}

impl Document {
    /// Adds the words of a part, which count `times` as much as others.
    pub(crate) fn add(&mut self, counts: &[(u16, u32)], length: f64, times: u32) {
        for (word, count) in counts {
            let more = count.saturating_mul(times);
            match self.counts.iter_mut().find(|(one, _)| one == word) {
                Some((_, sum)) => *sum = sum.saturating_add(more),
                None => self.counts.push((*word, more)),
            }
        }
        self.length += length * f64::from(times);
    }
}

/// How rare each word is, for words that so many of the documents hold.
pub(crate) fn rarity(documents: &[Document], words: usize) -> Vec<f64> {
    let mut holding = vec![0.0; words];
    for document in documents {
        for (word, _) in &document.counts {
            add(&mut holding, usize::from(*word), 1.0);
        }
    }
    let all = as_f64(documents.len());
    holding
        .into_iter()
        .map(|holding: f64| (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln())
        .collect()
}

/// The score of each document.
pub(crate) fn scores(documents: &[Document], weights: &[f64]) -> Vec<f64> {
    let total: f64 = documents.iter().map(|document| document.length).sum();
    let average = (total / as_f64(documents.len()).max(1.0)).max(1.0);
    let score = |document: &Document| {
        let norm = K1 * (1.0 - B + B * document.length / average);
        let each = document
            .counts
            .iter()
            .map(|(word, count)| (at_of(weights, usize::from(*word)), f64::from(*count)));
        each.map(|(weight, count)| weight * count * (K1 + 1.0) / (count + norm))
            .sum()
    };
    documents.iter().map(score).collect()
}

/// Counts of files and words are far below the numbers that this rounds.
#[expect(clippy::cast_precision_loss, reason = "a count of files or words")]
pub(crate) fn as_f64(count: usize) -> f64 {
    count as f64
}
