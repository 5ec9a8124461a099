//! Medians and quantiles.

/// The median.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The smallest sample that at least this part of the samples does not exceed.
pub fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(at.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// The median of each column.
pub fn medians(rows: &[Vec<f64>]) -> Vec<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| median(&rows.iter().map(|row| row[column]).collect::<Vec<_>>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&samples, 0.99), 198.0);
        assert_eq!(quantile(&samples, 0.0), 1.0);
        assert_eq!(quantile(&samples, 1.0), 200.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn each_column_has_its_own_median() {
        assert_eq!(medians(&[vec![1.0, 9.0], vec![2.0, 7.0], vec![3.0, 8.0]]), [2.0, 8.0]);
        assert_eq!(medians(&[]), [0.0_f64; 0]);
    }
}
