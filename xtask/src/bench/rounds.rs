//! Interleaves the kinds of a measurement, because a later measurement finds a warmer machine.

/// The order in which `N` kinds are measured in a round: alternately forwards and backwards.
pub(super) fn order<const N: usize>(round: usize) -> impl Iterator<Item = usize> {
    (0..N).map(move |at| if round.is_multiple_of(2) { at } else { N - 1 - at })
}

/// The order in which `N` kinds are measured in a round: each kind is first in turn.
pub(super) fn rotated<const N: usize>(round: usize) -> impl Iterator<Item = usize> {
    (0..N).map(move |at| (round + at) % N)
}

/// Measures each of `N` kinds once in each round. The figures of one round were measured side by side.
pub(super) fn interleaved<const N: usize>(
    rounds: usize,
    mut measure: impl FnMut(usize) -> Result<f64, String>,
) -> Result<Vec<[f64; N]>, String> {
    let mut figures = vec![[f64::NAN; N]; rounds];
    for (round, row) in figures.iter_mut().enumerate() {
        for kind in order::<N>(round) {
            row[kind] = measure(kind)?;
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_forwards_and_backwards() {
        let mut asked = Vec::new();
        let figures = interleaved::<2>(3, |kind| {
            asked.push(kind);
            u32::try_from(asked.len()).map(f64::from).map_err(|e| e.to_string())
        });
        assert_eq!(asked, [0, 1, 1, 0, 0, 1]);
        assert_eq!(figures, Ok(vec![[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]]));
    }

    #[test]
    fn each_kind_begins_a_round() {
        let rounds: Vec<Vec<_>> = (0..4).map(|round| rotated::<3>(round).collect()).collect();
        assert_eq!(rounds, [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }

    #[test]
    fn a_round_that_fails_ends_it() {
        assert_eq!(interleaved::<2>(3, |_| Err("no".to_owned())), Err("no".to_owned()));
    }
}
