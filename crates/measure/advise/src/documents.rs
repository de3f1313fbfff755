//! The five documents: their titles, where they are on the web, and their sections.
//!
//! A statement is known by its line in the text that Anabranch was built from. Nobody else has these texts with these lines, so
//! people are shown the section that the line is in, with a link to that section of the document. The headings and the anchors are
//! those of the English documents as of January 2025 (Azure Files: NFS performance: September 2023); a section that a document no
//! longer has opens the document at its top.

use super::advice::Statement;

/// A document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Its title, in short.
    pub title: &'static str,
    /// Where it is.
    pub url: &'static str,
    sections: &'static [Section],
}

/// A section of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The line of its heading.
    line: u32,
    /// Its heading.
    pub heading: &'static str,
    /// The fragment of its address.
    pub anchor: &'static str,
}

const fn section(line: u32, heading: &'static str, anchor: &'static str) -> Section {
    Section { line, heading, anchor }
}

/// The documents, in the order of the numbers of their statements.
static DOCUMENTS: [Document; 5] = [
    Document {
        title: "Azure Files: SMB performance",
        url: "https://learn.microsoft.com/en-us/azure/storage/files/smb-performance",
        sections: &[
            section(12, "Optimizing performance", "optimizing-performance"),
            section(
                24,
                "The relationship between IOPS, throughput, and I/O sizes",
                "the-relationship-between-iops-throughput-and-io-sizes",
            ),
            section(30, "SMB Multichannel", "smb-multichannel"),
            section(34, "Benefits", "benefits"),
            section(48, "Limitations", "limitations"),
            section(56, "Configuration", "windows-configuration"),
            section(66, "Disable SMB Multichannel", "disable-smb-multichannel"),
            section(
                70,
                "Verify SMB Multichannel is configured correctly",
                "verify-smb-multichannel-is-configured-correctly",
            ),
            section(81, "Performance comparison", "performance-comparison"),
            section(89, "Performance test configuration", "performance-test-configuration"),
            section(
                98,
                "Multi-threaded/multiple files with SMB Multichannel",
                "multi-threadedmultiple-files-with-smb-multichannel",
            ),
            section(
                115,
                "Multi-threaded/single file workloads with SMB Multichannel",
                "multi-threadedsingle-file-workloads-with-smb-multichannel",
            ),
            section(127, "Metadata caching for SSD file shares", "metadata-caching-for-ssd-file-shares"),
            section(
                151,
                "Performance improvements with metadata caching",
                "performance-improvements-with-metadata-caching",
            ),
        ],
    },
    Document {
        title: "Azure NetApp Files: SMB performance",
        url: "https://learn.microsoft.com/en-us/azure/azure-netapp-files/azure-netapp-files-smb-performance",
        sections: &[
            section(8, "SMB Multichannel", "smb-multichannel"),
            section(16, "Benefits of SMB Multichannel", "benefits-of-smb-multichannel"),
            section(20, "Performance for SMB Multichannel", "performance-for-smb-multichannel"),
            section(24, "Random I/O", "random-io"),
            section(36, "Sequential I/O", "sequential-io"),
            section(46, "SMB Signing", "smb-signing"),
            section(52, "Performance impact of SMB Signing", "performance-impact-of-smb-signing"),
            section(
                58,
                "Performance for a single instance with a 1-TB dataset",
                "performance-for-a-single-instance-with-a-1-tb-dataset",
            ),
            section(
                70,
                "Performance when scaling out using 5 VMs with a 1-TB dataset",
                "performance-when-scaling-out-using-5-vms-with-a-1-tb-dataset",
            ),
            section(
                82,
                "How to monitor Hyper-V ethernet adapters",
                "how-to-monitor-hyper-v-ethernet-adapters",
            ),
            section(94, "SMB encryption", "smb-encryption"),
            section(104, "SMB encryption and Azure NetApp Files", "smb-encryption-and-azure-netapp-files"),
            section(110, "Impact of SMB encryption on client workloads", "smb_encryption_impact"),
            section(118, "Accelerated Networking", "accelerated-networking"),
            section(126, "Receive side scaling", "receive-side-scaling"),
            section(136, "Multiple NICs on SMB clients", "multiple-nics-on-smb-clients"),
        ],
    },
    Document {
        title: "Azure Files: NFS performance",
        url: "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance",
        sections: &[
            section(
                24,
                "Increase read-ahead size to improve read throughput",
                "increase-read-ahead-size-to-improve-read-throughput",
            ),
            section(46, "Nconnect", "nconnect"),
            section(50, "Benefits of nconnect", "benefits-of-nconnect"),
            section(60, "Prerequisites", "prerequisites"),
            section(65, "Performance impact of nconnect", "performance-impact-of-nconnect"),
            section(73, "Recommendations for nconnect", "recommendations-for-nconnect"),
            section(77, "Set nconnect=4", "set-nconnect4"),
            section(81, "Size virtual machines carefully", "size-virtual-machines-carefully"),
            section(
                85,
                "Keep queue depth less than or equal to 64",
                "keep-queue-depth-less-than-or-equal-to-64",
            ),
            section(89, "Nconnect per-mount configuration", "nconnect-per-mount-configuration"),
            section(119, "Performance test configuration", "performance-test-configuration"),
            section(129, "Benchmarking tools and tests", "benchmarking-tools-and-tests"),
            section(
                175,
                "Performance considerations for nconnect",
                "performance-considerations-for-nconnect",
            ),
        ],
    },
    Document {
        title: "Azure Files: SMB Multichannel",
        url: "https://learn.microsoft.com/en-us/azure/storage/files/storage-files-smb-multichannel-performance",
        sections: &[
            section(21, "Benefits", "benefits"),
            section(35, "Limitations", "limitations"),
            section(43, "Configuration", "configuration"),
            section(68, "Performance comparison", "performance-comparison"),
            section(115, "Optimizing performance", "optimizing-performance"),
        ],
    },
    Document {
        title: "Azure NetApp Files: Linux benchmarks",
        url: "https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-benchmarks-linux",
        sections: &[
            section(
                10,
                "Whole file streaming workloads (scale-out benchmark tests)",
                "whole-file-streaming-workloads-scale-out-benchmark-tests",
            ),
            section(49, "Scale-up benchmark tests", "scale-up-benchmark-tests"),
            section(55, "High I/OP scale-out benchmarks", "high-iop-scale-out-benchmarks"),
            section(
                67,
                "Results: 4 KiB, random, client caching included",
                "results-4-kib-random-client-caching-included",
            ),
            section(
                77,
                "Results: 4 KiB, random, client caching excluded",
                "results-4-kib-random-client-caching-excluded",
            ),
            section(
                87,
                "Results: 8 KiB, random, client caching excluded",
                "results-8-kib-random-client-caching-excluded",
            ),
            section(97, "Side-by-side comparisons", "side-by-side-comparisons"),
            section(
                109,
                "Results: 4 KiB, random, with and without nconnect, caching excluded",
                "results-4-kib-random-with-and-without-nconnect-caching-excluded",
            ),
            section(117, "High throughput benchmarks", "high-throughput-benchmarks"),
            section(
                131,
                "Results: 64 KiB sequential I/O, caching included",
                "results-64-kib-sequential-io-caching-included",
            ),
            section(
                139,
                "Results: 64 KiB sequential I/O, caching excluded",
                "results-64-kib-sequential-io-reads-vs-write-baseline-without-caching",
            ),
            section(
                149,
                "Results: 256 KiB sequential I/O without caching",
                "results-256-kib-sequential-io-without-caching",
            ),
            section(159, "Side-by-side comparison", "side-by-side-comparison"),
            section(165, "Parallel network connections (nconnect)", "parallel-network-connections-nconnect"),
            section(
                177,
                "Side-by-side comparison (with and without nconnect)",
                "side-by-side-comparison-with-and-without-nconnect",
            ),
        ],
    },
];

/// The document that a statement's number, such as `1.21`, begins with.
#[must_use]
pub fn document_of(id: &str) -> Option<&'static Document> {
    let number = id.split('.').next()?.parse::<usize>().ok()?;
    DOCUMENTS.get(number.checked_sub(1)?)
}

/// The title of the document that a statement's number begins with.
#[must_use]
pub fn title(id: &str) -> &'static str {
    document_of(id).map_or("?", |document| document.title)
}

impl Document {
    /// The section that a line is in.
    #[must_use]
    pub fn section_at(&self, line: u32) -> Option<&'static Section> {
        self.sections.iter().rev().find(|section| section.line <= line)
    }
}

impl Statement {
    /// The section that it is in.
    #[must_use]
    pub fn section(&self) -> Option<&'static Section> {
        document_of(self.id)?.section_at(self.line)
    }

    /// The address of that section.
    #[must_use]
    pub fn link(&self) -> String {
        let document = document_of(self.id).map_or("", |document| document.url);
        self.section().map_or_else(|| document.to_owned(), |section| format!("{document}#{}", section.anchor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_in_order_and_have_anchors_that_an_address_can_have() {
        for document in &DOCUMENTS {
            assert!(document.url.starts_with("https://learn.microsoft.com/"), "{}", document.title);
            assert!(document.sections.windows(2).all(|two| two[0].line < two[1].line), "{}", document.title);
            for section in document.sections {
                let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
                assert!(section.anchor.chars().all(is_fit), "{}", section.anchor);
            }
        }
    }

    #[test]
    fn a_statement_has_the_section_that_its_line_is_in() {
        let heading = |id, line| Statement { id, line }.section().map(|section| section.heading);
        assert_eq!(heading("1.20", 85), Some("Performance comparison"));
        assert_eq!(heading("1.28", 124), Some("Multi-threaded/single file workloads with SMB Multichannel"));
        assert_eq!(heading("2.16", 115), Some("Impact of SMB encryption on client workloads"));
        assert_eq!(heading("3.09", 79), Some("Set nconnect=4"));
        assert_eq!(heading("5.08", 91), Some("Results: 8 KiB, random, client caching excluded"));
        assert_eq!((heading("1.20", 3), heading("9.1", 3), heading("x", 3)), (None, None, None));
        let statement = Statement { id: "3.09", line: 79 };
        assert_eq!(
            statement.link(),
            "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance#set-nconnect4"
        );
        assert_eq!(statement.to_string(), "Azure Files: NFS performance, \"Set nconnect=4\" (3.09)");
    }
}
