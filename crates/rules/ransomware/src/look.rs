//! What a piece of data looks like.

/// How much of what is written is looked at, in bytes.
pub const SAMPLE_BYTES: usize = 4096;
/// Less than this says nothing, in bytes.
const LEAST: usize = 256;
/// The most that the sum of squared deviations from equal counts of all bytes may be for random data. It is 255 on average with a
/// standard deviation of 22.6 (chi-squared distribution with 255 degrees of freedom), so this is 6.4 of them away.
const RANDOM_MAX: usize = 400;

/// What a piece of data looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// There is some order in it, or too little of it to say.
    Plain,
    /// It begins as the files of a format begin whose contents look random: a picture, a film, an archive.
    Known,
    /// It looks random: encrypted, or compressed without a known header.
    Noise,
}

/// What data looks like that is (or was) at this offset of a file. Only the first [`SAMPLE_BYTES`] of it count.
#[must_use]
pub fn look(data: &[u8], offset: u64) -> Look {
    let data = data.get(..SAMPLE_BYTES).unwrap_or(data);
    if !is_random(data) {
        return Look::Plain;
    }
    if offset == 0 && has_known_header(data) { Look::Known } else { Look::Noise }
}

/// Pearson's chi-squared test of equal counts of all bytes.
fn is_random(data: &[u8]) -> bool {
    if data.len() < LEAST {
        return false;
    }
    let mut counts = [0_usize; 256];
    for byte in data {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let squares: usize = counts.iter().map(|count| count * count).sum();
    squares * counts.len() <= (RANDOM_MAX + data.len()) * data.len()
}

/// How files of formats begin that are compressed or, some of the last ones, encrypted by their users: `(where, what)`.
const HEADERS: &[(usize, &[u8])] = &[
    (0, b"\xff\xd8\xff"),       // JPEG
    (0, b"\x89PNG"),            // PNG
    (0, b"GIF8"),               // GIF
    (0, b"RIFF"),               // WebP, AVI, WAV
    (0, b"II*\0"),              // TIFF and raw pictures
    (0, b"MM\0*"),              // TIFF and raw pictures
    (0, b"FUJIFILM"),           // raw pictures
    (0, b"8BPS"),               // Photoshop
    (0, b"\0\0\0\x0cjP  "),     // JPEG 2000
    (0, b"\0\0\0\x0cJXL "),     // JPEG XL
    (0, b"\xff\x0a"),           // JPEG XL
    (4, b"ftyp"),               // MP4, MOV, HEIC, AVIF, CR3
    (4, b"moov"),               // QuickTime
    (4, b"mdat"),               // QuickTime
    (0, b"\x1a\x45\xdf\xa3"),   // Matroska, WebM
    (0, b"\0\0\x01\xba"),       // MPEG program stream
    (0, b"\0\0\x01\xb3"),       // MPEG video
    (0, b"FLV"),                // Flash video
    (0, b"\x30\x26\xb2\x75"),   // ASF, WMV, WMA
    (0, b"ID3"),                // MP3
    (0, b"\xff\xfb"),           // MP3
    (0, b"\xff\xf3"),           // MP3
    (0, b"\xff\xf1"),           // AAC
    (0, b"OggS"),               // Ogg
    (0, b"fLaC"),               // FLAC
    (0, b"PK\x03\x04"),         // ZIP: also DOCX, XLSX, ODT, JAR, APK
    (0, b"\x1f\x8b"),           // gzip
    (0, b"BZh"),                // bzip2
    (0, b"\xfd7zXZ"),           // xz
    (0, b"\x28\xb5\x2f\xfd"),   // Zstandard
    (0, b"\x04\x22\x4d\x18"),   // LZ4
    (0, b"LZIP"),               // lzip
    (0, b"7z\xbc\xaf\x27\x1c"), // 7-Zip
    (0, b"Rar!"),               // RAR
    (0, b"MSCF"),               // cabinet
    (0, b"!<arch>"),            // Debian package, static library
    (0, b"\xed\xab\xee\xdb"),   // RPM
    (0, b"hsqs"),               // SquashFS
    (0, b"%PDF"),               // PDF
    (0, b"\xd0\xcf\x11\xe0"),   // DOC, XLS, MSI
    (0, b"SQLite format 3"),    // SQLite
    (0, b"PAR1"),               // Parquet
    (0, b"\x89HDF"),            // HDF5
    (0, b"PACK"),               // pack of Git
    (0, b"wOF"),                // fonts of the web
    (0, b"\x7fELF"),            // program
    (0, b"MZ"),                 // program
    (0, b"\xca\xfe\xba\xbe"),   // Java class, program of macOS
    (0, b"QFI\xfb"),            // disk of QEMU
    (0, b"KDMV"),               // disk of VMware
    (0, b"LUKS"),               // encrypted disk
    (0, b"\x03\xd9\xa2\x9a"),   // KeePass
    (0, b"Salted__"),           // OpenSSL
    (0, b"age-encryption.org"), // age
    (0, b"-----BEGIN"),         // PEM, OpenPGP in text
    (0, b"AES"),                // AES Crypt
];

fn has_known_header(data: &[u8]) -> bool {
    let begins = |(at, header): &(usize, &[u8])| data.get(*at..).is_some_and(|rest| rest.starts_with(header));
    HEADERS.iter().any(begins) || is_zlib(data)
}

/// RFC 1950 2.2: deflate with a window of at most 32 KiB, and a check of both bytes. Loose objects of Git begin so.
fn is_zlib(data: &[u8]) -> bool {
    let [first, second, ..] = data else { return false };
    first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([*first, *second]).is_multiple_of(31)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Bytes of a xorshift generator.
    pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()[3]
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    #[test]
    fn random_data_of_every_length_is_noise_and_shorter_data_is_not() {
        for seed in 1..200 {
            // A header of three bytes or less can be there by chance.
            let data = noise(SAMPLE_BYTES, seed * 7919);
            assert_eq!(look(&data, 4096), Look::Noise, "seed {seed}");
            assert_eq!(look(&data[..LEAST], 4096), Look::Noise, "seed {seed}");
            assert_eq!(look(&data[..LEAST - 1], 0), Look::Plain);
        }
    }

    #[test]
    fn text_and_tables_and_empty_space_are_plain() {
        let text = "The quick brown fox jumps over the lazy dog. 0123456789\n".repeat(80);
        let table: Vec<u8> = (0_u32..2048).flat_map(|n| (n * 37).to_le_bytes()).collect();
        let base64: Vec<u8> = noise(8192, 5).iter().map(|byte| b'0' + byte % 64).collect();
        for data in [text.as_bytes(), &table, &base64, &[0; 8192], &[]] {
            assert_eq!(look(data, 0), Look::Plain);
        }
    }

    #[test]
    fn compressed_formats_are_known_at_their_beginning_only() {
        for (at, header) in HEADERS {
            let mut data = noise(SAMPLE_BYTES, 11);
            data[*at..at + header.len()].copy_from_slice(header);
            assert_eq!(look(&data, 0), Look::Known, "{header:?}");
            assert_eq!(look(&data, 4096), Look::Noise, "{header:?}");
        }
        let mut data = noise(SAMPLE_BYTES, 12);
        data[..2].copy_from_slice(b"\x78\x9c");
        assert_eq!(look(&data, 0), Look::Known);
        data[..2].copy_from_slice(b"\x78\x9d");
        assert_eq!(look(&data, 0), Look::Noise);
    }

    #[test]
    fn only_the_first_bytes_count() {
        let data = [&noise(SAMPLE_BYTES, 3)[..], &[0; 65_536]].concat();
        assert_eq!(look(&data, 4096), Look::Noise);
    }
}
