//! The gaps of Poisson arrivals: each is drawn from the seed and its own number.
//!
//! So every thread draws the same schedule without a word to the others, and takes its own starts from it.

use super::nanos;
use crate::model::Nanos;

/// The gap before start `number`: exponentially distributed with the mean `1 / per_second`.
pub(super) fn gap(per_second: f64, seed: u64, number: u64) -> Nanos {
    // In (0, 1], so that the logarithm is finite: 53 bits, as many as a double has.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let uniform = ((mixed(seed, number) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    nanos(-uniform.ln() / per_second)
}

/// SplitMix64 (Steele, Lea, Flood 2014) at position `number` of the sequence that begins at the mixed seed; the seed is
/// mixed first, so that neighbouring seeds do not share a sequence.
fn mixed(seed: u64, number: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    finished(finished(seed.wrapping_add(GOLDEN)).wrapping_add(number.wrapping_add(1).wrapping_mul(GOLDEN)))
}

fn finished(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
