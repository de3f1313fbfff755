//! What a gateway of a cluster knows of itself.

use super::{Text, escape};
use crate::cluster::GatewayFigures;

/// None: the server is no gateway of a cluster.
pub(super) fn write(text: &mut Text, figures: Option<&GatewayFigures>) {
    let vserver = |name: &str| format!("vserver=\"{}\"", escape(name));
    text.family("anabranch_cluster_place", "gauge", "Whether a gateway has its place in the cluster.");
    if let Some(figures) = figures {
        text.line("", "", u8::from(figures.has_place));
    }
    let help = "The interfaces for vservers that have no carrier, or are not there.";
    text.family("anabranch_cluster_interface_cut_off", "gauge", help);
    for interface in figures.iter().flat_map(|figures| &figures.cut_off) {
        text.line("", &format!("interface=\"{}\"", escape(interface)), 1);
    }
    let help = "The vservers that this gateway serves: the epoch of each.";
    text.family("anabranch_vserver_epoch", "gauge", help);
    for (name, epoch) in figures.iter().flat_map(|figures| &figures.served) {
        text.line("", &vserver(name), epoch);
    }
    let takeovers = || figures.iter().flat_map(|figures| &figures.takeovers);
    let help = "Vservers that were taken over from gateways that had lost their lease.";
    text.family("anabranch_vserver_takeovers_total", "counter", help);
    for of in takeovers() {
        text.line("", &vserver(&of.vserver), of.count);
    }
    let help = "How long the last takeover of a vserver took, by what was done.";
    text.family("anabranch_vserver_takeover_seconds", "gauge", help);
    for of in takeovers() {
        for (phase, took) in &of.last {
            let labels = format!("{},phase=\"{phase}\"", vserver(&of.vserver));
            text.line("", &labels, format_args!("{:.3}", took.as_secs_f64()));
        }
    }
}
