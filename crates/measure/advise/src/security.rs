//! What signing and encryption cost: R17 and R19.

use super::advice::{Advice, Side, Source, Verdict, advice, document};
use super::facts::{Change, Facts};
use load::statistics::Conclusion;

/// A CPU that is as busy as this is the limit.
const HOT: f64 = 0.9;

/// R17: a slow signature on one CPU.
pub(super) fn slow_signature(facts: &Facts) -> Option<Advice> {
    let signing = facts.security.signing.as_deref().filter(|_| facts.is_smb())?;
    let busiest = facts.security.busiest_cpu.filter(|&cpu| cpu >= HOT)?;
    let slow = signing.contains("CMAC") || signing.contains("HMAC");
    (slow && facts.security.cipher.is_none()).then(|| {
        let text = "one CPU is busy with signatures: use AES-GMAC (SMB 3.1.1, Windows 11 or Server 2022, Linux 5.15 or later), or encrypt with AES-GCM instead";
        advice(17, Verdict::Red, document("2.10", 54), text)
            .figure(format!("{signing}, the busiest CPU at {:.0} %", busiest * 100.0))
            .on(Side::Linux, "mount -o vers=3.1.1,seal ...")
            .on(Side::Windows, "Set-SmbClientConfiguration -RequireEncryption $true   # Windows 11 24H2 and Server 2025")
            .on(Side::Server, "anabranch serve --smb-encryption required")
    })
}

/// R19: what encryption is expected to cost, beside what it does.
pub(super) fn encryption_costs(facts: &Facts) -> Option<Advice> {
    let cipher = facts.security.cipher.as_deref().filter(|_| facts.is_smb())?;
    let metadata = facts.work.is_mostly_metadata();
    let (expected, line) =
        if metadata { ("5 % of metadata operations", 116) } else { ("10 to 15 % of reads and writes", 115) };
    let most = if metadata { 0.05 } else { 0.15 };
    let figure = format!("{cipher}; expected {expected}");
    let Some(effect) = facts.effect(|change| change == Change::Encryption) else {
        let text = format!("encryption is on: it is expected to cost {expected}");
        return Some(advice(19, Verdict::Yellow, document("2.16", line), text).figure(figure));
    };
    let (verdict, text) = match effect.conclusion() {
        Conclusion::Higher => (Verdict::Green, "encryption costs nothing here".to_owned()),
        Conclusion::NoEffect => {
            (Verdict::Green, "encryption costs nothing that can be measured here".to_owned())
        }
        Conclusion::TooNoisy => (Verdict::Yellow, "too noisy to tell what encryption costs here".to_owned()),
        Conclusion::Lower if effect.ratio >= 1.0 - most => {
            (Verdict::Yellow, format!("encryption costs what is expected ({expected})"))
        }
        Conclusion::Lower => (
            Verdict::Red,
            format!(
                "encryption costs more than is expected ({expected}): see whether both CPUs have AES instructions and AES-128-GCM is used"
            ),
        ),
    };
    Some(advice(19, verdict, Source::Measured, text).figure(figure).figure(effect.to_string()))
}
