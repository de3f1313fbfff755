//! The section of the page.

use super::{CephFsArguments, Row, Run};
use crate::bench::figures::{interval, median, thousands};
use crate::bench::machine;
use crate::markdown::{reached, table};

const HEADS: [&str; 8] = [
    "row",
    "Anabranch, operations/s",
    "peer, operations/s",
    "ratio of rates",
    "goal",
    "Anabranch, CPU us",
    "peer, CPU us",
    "Anabranch / peer",
];

pub(super) fn section(given: &CephFsArguments, rows: &[Row], memory: f64) -> Result<String, String> {
    let cells: Vec<_> = rows.iter().map(cells).collect();
    Ok(format!(
        "# In CephFS, beside Samba and NFS-Ganesha\n\nMade by `cargo xtask bench cephfs --write`: a Ceph cluster on the same machine (three \
         OSDs, tests/lab/ceph-lab), and three servers of its\nfile system with Ceph's client library: Anabranch, Samba with vfs_ceph (rows of \
         SMB) and NFS-Ganesha with FSAL_CEPH (rows of NFS). One\nclient over one connection: 4 KiB with 16 requests under way, 64 KiB and 1 MiB \
         with 8, metadata by 8 threads; {} interleaved rounds of {} s.\nCPU is that of the server for one operation; ratios are medians of the \
         rounds, with the 95 % interval of the median. Client, servers and\ncluster share the processors, so that a rate says what all of them \
         together can do.\n\n{}\n\nAfter these rows Anabranch had {memory:.0} MiB in memory.\n\n{}\n",
        given.rounds,
        given.seconds,
        table(&HEADS, &cells),
        machine::measured("release build")?
    ))
}

/// A row in one line, for whoever waits.
pub(super) fn line(row: &Row) -> String {
    cells(row).join("  ")
}

fn cells(row: &Row) -> [String; 8] {
    let of = |which: usize, what: fn(&Run) -> f64| {
        median(&row.pairs.iter().map(|pair| what(&pair[which])).collect::<Vec<_>>())
    };
    let ratios = |what: fn(&Run) -> f64| -> Vec<f64> {
        row.pairs.iter().map(|[ours, theirs]| what(ours) / what(theirs)).collect()
    };
    let (rates, cpus) = (ratios(|run| run.rate), ratios(|run| run.cpu));
    let goal = format!("{}: {}", row.rate_min, reached(median(&rates) >= row.rate_min));
    [
        format!("{}, {}", row.name, row.peer),
        thousands(of(0, |run| run.rate)),
        thousands(of(1, |run| run.rate)),
        with_interval(&rates),
        goal,
        thousands(of(0, |run| run.cpu)),
        thousands(of(1, |run| run.cpu)),
        with_interval(&cpus),
    ]
}

fn with_interval(ratios: &[f64]) -> String {
    let (low, high) = interval(ratios);
    format!("{:.2} ({low:.2} to {high:.2})", median(ratios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round() {
        let run = |rate: f64, cpu: f64| Run { rate, cpu };
        let pairs = vec![
            [run(2000.0, 10.0), run(1000.0, 40.0)],
            [run(3000.0, 10.0), run(1000.0, 20.0)],
            [run(100.0, 10.0), run(100.0, 10.0)],
        ];
        let row = Row { name: "smb 4 KiB reads".to_owned(), peer: "Samba", rate_min: 1.0, pairs };
        let cells = cells(&row);
        assert_eq!(cells[..3], ["smb 4 KiB reads, Samba", "2,000", "1,000"]);
        assert_eq!((cells[3].as_str(), cells[4].as_str()), ("2.00 (1.00 to 3.00)", "1: reached"));
        assert_eq!(cells[7], "0.50 (0.25 to 1.00)");
    }
}
