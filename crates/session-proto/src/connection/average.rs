//! Averages that decay with every message.

/// Value below which an average counts as zero, far below every share that matters.
const NEGLIGIBLE: f64 = 1e-12;

/// Sets an average that has decayed to almost nothing to zero. Without that a session without loss would reach subnormal
/// numbers after some ten thousand messages, and processors take a hundred cycles for each calculation with those.
#[inline]
pub(super) fn flush_subnormal(average: f64) -> f64 {
    if average < NEGLIGIBLE { 0.0 } else { average }
}
