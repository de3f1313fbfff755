//! The messages: XML in, XML out, without sockets and without a clock.

use std::cell::Cell;
use std::collections::VecDeque;

use roxmltree::{Document, Node, ParsingOptions};

/// The most bytes of a message that is looked at.
pub(super) const MESSAGE_BYTES_MAX: usize = 4096;
/// The most nodes of such a message.
const NODES_MAX: u32 = 256;
/// The most bytes of the identifier of a message, which a reply repeats.
const ID_BYTES_MAX: usize = 128;
/// Identifiers that are remembered, so that a message that is sent several times is answered once (SOAP over UDP, section 4).
const REMEMBERED: usize = 32;
/// A reply is at most so many times as long as what asks for it: nobody is worth being drawn into an attack.
const LONGER_MAX: usize = 2;

const SOAP: &str = "http://www.w3.org/2003/05/soap-envelope";
const WSA: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
const WSD: &str = "http://schemas.xmlsoap.org/ws/2005/04/discovery";
const WSDP: &str = "http://schemas.xmlsoap.org/ws/2006/02/devprof";
const PUB: &str = "http://schemas.microsoft.com/windows/pub/2005/07";
/// The metadata's other namespaces: Metadata Exchange, and Plug and Play of Windows.
const WSX: &str = "http://schemas.xmlsoap.org/ws/2004/09/mex";
const PNPX: &str = "http://schemas.microsoft.com/windows/pnpx/2005/10";
const TRANSFER: &str = "http://schemas.xmlsoap.org/ws/2004/09/transfer";
/// The destination of multicast messages (WS-Discovery, section 4.1).
const EVERYBODY: &str = "urn:schemas-xmlsoap-org:ws:2005:04:discovery";
/// The types of the host: a device of the profile, and a computer of [MS-PBSD].
const TYPES: [(&str, &str); 2] = [(WSDP, "Device"), (PUB, "Computer")];

/// A host that can be discovered.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// `urn:uuid:...`
    address: String,
    /// As Windows shows it.
    name: String,
    instance: u64,
    sent: Cell<u32>,
}

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) what: What,
    /// The identifier of the message.
    id: String,
    bytes: usize,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Which hosts are there?
    Probe,
    /// Where is this host?
    Resolve,
    /// What is this host?
    Get,
}

/// Identifiers of messages.
#[derive(Debug, Default)]
pub(super) struct Remembered(VecDeque<String>);

impl Remembered {
    /// Whether the message is new.
    pub(super) fn is_new(&mut self, asked: &Asked) -> bool {
        if self.0.contains(&asked.id) {
            return false;
        }
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(asked.id.clone());
        true
    }
}

fn child<'a, 'i>(of: Node<'a, 'i>, namespace: &str, name: &str) -> Option<Node<'a, 'i>> {
    of.children().find(|node| node.has_tag_name((namespace, name)))
}

fn text<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default().trim()
}

/// The text without what has a meaning in XML. Control characters, which XML has none of, are left out.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !character.is_control()) {
        match character {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            other => written.push(other),
        }
    }
    written
}

impl Endpoint {
    /// A host with this identity and name; `instance` is greater than that of its last run.
    pub(super) fn new(id: [u8; 16], name: &str, instance: u64) -> Self {
        let name = name.to_uppercase(); // as NetBIOS names are, which Windows shows beside it
        Self { address: urn(id), name, instance, sent: Cell::new(0) }
    }

    /// The path at which metadata is.
    pub(super) fn path(&self) -> String {
        format!("/{}", self.address.trim_start_matches("urn:uuid:"))
    }

    /// What a message asks of this host; None if nothing.
    pub(super) fn asked(&self, message: &[u8]) -> Option<Asked> {
        let message =
            std::str::from_utf8(Some(message).filter(|message| message.len() <= MESSAGE_BYTES_MAX)?).ok()?;
        // No DTD, so no entity is expanded.
        let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        let document = Document::parse_with_options(message, options).ok()?;
        let envelope = Some(document.root_element()).filter(|root| root.has_tag_name((SOAP, "Envelope")))?;
        let (header, body) = (child(envelope, SOAP, "Header")?, child(envelope, SOAP, "Body")?);
        let id = text(child(header, WSA, "MessageID")?);
        let id = Some(id).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)?;
        let action = text(child(header, WSA, "Action")?);
        let what = match (action.strip_prefix(WSD), action.strip_prefix(TRANSFER)) {
            (Some("/Probe"), _) => is_probed(child(body, WSD, "Probe")?).then_some(What::Probe),
            (Some("/Resolve"), _) => self.is_named(child(body, WSD, "Resolve")?).then_some(What::Resolve),
            (_, Some("/Get")) => (text(child(header, WSA, "To")?) == self.address).then_some(What::Get),
            _ => None,
        };
        Some(Asked { what: what?, id: id.to_owned(), bytes: message.len() })
    }

    fn is_named(&self, resolve: Node<'_, '_>) -> bool {
        let reference = child(resolve, WSA, "EndpointReference");
        reference
            .and_then(|of| child(of, WSA, "Address"))
            .is_some_and(|address| text(address) == self.address)
    }

    /// The reply to a datagram. `random` becomes its identifier, and `at` is where the metadata is. None: it would be far longer
    /// than what asks for it, or is not for datagrams.
    pub(super) fn reply(&self, asked: &Asked, random: [u8; 16], at: &str) -> Option<String> {
        let own = self.reference();
        let types = "<wsd:Types>wsdp:Device pub:Computer</wsd:Types>";
        let version = "<wsd:MetadataVersion>1</wsd:MetadataVersion>";
        let (action, body) = match asked.what {
            What::Probe => {
                let found = format!("<wsd:ProbeMatch>{own}{types}{version}</wsd:ProbeMatch>");
                ("ProbeMatches", format!("<wsd:ProbeMatches>{found}</wsd:ProbeMatches>"))
            }
            What::Resolve => {
                let at = format!("<wsd:XAddrs>{}</wsd:XAddrs>", escaped(at));
                let found = format!("<wsd:ResolveMatch>{own}{types}{at}{version}</wsd:ResolveMatch>");
                ("ResolveMatches", format!("<wsd:ResolveMatches>{found}</wsd:ResolveMatches>"))
            }
            What::Get => return None,
        };
        let to = format!("{WSA}/role/anonymous");
        let message = self.message(&to, &format!("{WSD}/{action}"), Some(&asked.id), random, &body);
        (message.len() <= LONGER_MAX * asked.bytes).then_some(message)
    }

    /// The host has come (section 4.1).
    pub(super) fn hello(&self, random: [u8; 16], at: &str) -> String {
        let (own, at) = (self.reference(), escaped(at));
        let body = format!(
            "<wsd:Hello>{own}<wsd:Types>wsdp:Device pub:Computer</wsd:Types><wsd:XAddrs>{at}</wsd:XAddrs>\
             <wsd:MetadataVersion>1</wsd:MetadataVersion></wsd:Hello>"
        );
        self.message(EVERYBODY, &format!("{WSD}/Hello"), None, random, &body)
    }

    /// The host goes (section 4.2).
    pub(super) fn bye(&self, random: [u8; 16]) -> String {
        let body = format!("<wsd:Bye>{}</wsd:Bye>", self.reference());
        self.message(EVERYBODY, &format!("{WSD}/Bye"), None, random, &body)
    }

    /// What the host is (Devices Profile, section 5; [MS-PBSD] 2.1: `NAME/Workgroup:WORKGROUP`).
    pub(super) fn metadata(&self, asked: &Asked, random: [u8; 16]) -> String {
        let (name, own) = (escaped(&self.name), self.reference());
        let section = |dialect: &str, content: &str| {
            format!("<wsx:MetadataSection Dialect=\"{WSDP}/{dialect}\">{content}</wsx:MetadataSection>")
        };
        let device = format!(
            "<wsdp:ThisDevice><wsdp:FriendlyName>{name}</wsdp:FriendlyName><wsdp:FirmwareVersion>1.0</wsdp:FirmwareVersion>\
             <wsdp:SerialNumber>1</wsdp:SerialNumber></wsdp:ThisDevice>"
        );
        let model = "<wsdp:ThisModel><wsdp:Manufacturer>Anabranch</wsdp:Manufacturer><wsdp:ModelName>Anabranch</wsdp:ModelName>\
             <pnpx:DeviceCategory>Computers</pnpx:DeviceCategory></wsdp:ThisModel>";
        let host = format!(
            "<wsdp:Relationship Type=\"{WSDP}/host\"><wsdp:Host>{own}<wsdp:Types>pub:Computer</wsdp:Types>\
             <wsdp:ServiceId>{}</wsdp:ServiceId><pub:Computer>{name}/Workgroup:WORKGROUP</pub:Computer></wsdp:Host>\
             </wsdp:Relationship>",
            self.address
        );
        let sections =
            [section("ThisDevice", &device), section("ThisModel", model), section("Relationship", &host)]
                .concat();
        let body = format!("<wsx:Metadata>{sections}</wsx:Metadata>");
        let to = format!("{WSA}/role/anonymous");
        self.message(&to, &format!("{TRANSFER}/GetResponse"), Some(&asked.id), random, &body)
    }

    fn reference(&self) -> String {
        format!("<wsa:EndpointReference><wsa:Address>{}</wsa:Address></wsa:EndpointReference>", self.address)
    }

    fn message(
        &self,
        to: &str,
        action: &str,
        relates_to: Option<&str>,
        random: [u8; 16],
        body: &str,
    ) -> String {
        let number = self.sent.get().wrapping_add(1);
        self.sent.set(number);
        let relates_to = relates_to
            .map_or_else(String::new, |id| format!("<wsa:RelatesTo>{}</wsa:RelatesTo>", escaped(id)));
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><soap:Envelope xmlns:soap=\"{SOAP}\" xmlns:wsa=\"{WSA}\" \
             xmlns:wsd=\"{WSD}\" xmlns:wsx=\"{WSX}\" xmlns:wsdp=\"{WSDP}\" xmlns:pnpx=\"{PNPX}\" xmlns:pub=\"{PUB}\">\
             <soap:Header><wsa:To>{to}</wsa:To><wsa:Action>{action}</wsa:Action><wsa:MessageID>{}</wsa:MessageID>{relates_to}\
             <wsd:AppSequence InstanceId=\"{}\" MessageNumber=\"{number}\"/></soap:Header><soap:Body>{body}</soap:Body>\
             </soap:Envelope>",
            urn(random),
            self.instance
        )
    }
}

/// Whether a probe means this host: all types that it names are among the host's, and it names no scope (section 5.1: a host
/// without scopes matches none).
fn is_probed(probe: Node<'_, '_>) -> bool {
    if child(probe, WSD, "Scopes").is_some_and(|scopes| !text(scopes).is_empty()) {
        return false;
    }
    let Some(types) = child(probe, WSD, "Types") else { return true };
    text(types).split_ascii_whitespace().all(|name| {
        let (prefix, name) = name.split_once(':').map_or((None, name), |(prefix, name)| (Some(prefix), name));
        types.lookup_namespace_uri(prefix).is_some_and(|namespace| TYPES.contains(&(namespace, name)))
    })
}

/// RFC 4122 3.
fn urn(id: [u8; 16]) -> String {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default().to_owned();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: &str = "urn:uuid:01020304-0506-0708-090a-0b0c0d0e0f10";

    fn endpoint() -> Endpoint {
        Endpoint::new([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], "files", 7)
    }

    /// What Windows 10 sends when Explorer opens the Network view, with this body.
    fn message(action: &str, to: &str, body: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><soap:Envelope xmlns:soap=\"{SOAP}\" xmlns:wsa=\"{WSA}\" \
             xmlns:wsd=\"{WSD}\" xmlns:wsdp=\"{WSDP}\" xmlns:p=\"{PUB}\"><soap:Header><wsa:To>{to}</wsa:To><wsa:Action>{action}</wsa:Action>\
             <wsa:MessageID>urn:uuid:5a2d3f0c-3a1c-4b57-9a4c-8f6a2d5b7c11</wsa:MessageID></soap:Header>\
             <soap:Body>{body}</soap:Body></soap:Envelope>"
        )
    }

    fn probe(body: &str) -> String {
        message(&format!("{WSD}/Probe"), EVERYBODY, &format!("<wsd:Probe>{body}</wsd:Probe>"))
    }

    fn what(message: &str) -> Option<What> {
        endpoint().asked(message.as_bytes()).map(|asked| asked.what)
    }

    #[test]
    fn a_probe_is_for_this_host_if_its_types_are() {
        for types in
            ["", "<wsd:Types>wsdp:Device</wsd:Types>", "<wsd:Types>p:Computer wsdp:Device</wsd:Types>"]
        {
            assert_eq!(what(&probe(types)), Some(What::Probe), "{types}");
        }
        for other in [
            "<wsd:Types>wsdp:Printer</wsd:Types>",
            "<wsd:Types>Device</wsd:Types>",
            "<wsd:Types>other:Device</wsd:Types>",
            "<wsd:Types>wsdp:Device p:Printer</wsd:Types>",
            "<wsd:Types>wsdp:Device</wsd:Types><wsd:Scopes>ldap:///ou=x</wsd:Scopes>",
        ] {
            assert_eq!(what(&probe(other)), None, "{other}");
        }
    }

    #[test]
    fn only_this_host_is_resolved_and_described() {
        let resolve = |address: &str| {
            let reference = format!(
                "<wsa:EndpointReference><wsa:Address>{address}</wsa:Address></wsa:EndpointReference>"
            );
            message(&format!("{WSD}/Resolve"), EVERYBODY, &format!("<wsd:Resolve>{reference}</wsd:Resolve>"))
        };
        assert_eq!(what(&resolve(OWN)), Some(What::Resolve));
        assert_eq!(what(&resolve("urn:uuid:01020304-0506-0708-090a-0b0c0d0e0f11")), None);
        assert_eq!(what(&message(&format!("{TRANSFER}/Get"), OWN, "")), Some(What::Get));
        assert_eq!(what(&message(&format!("{TRANSFER}/Get"), EVERYBODY, "")), None);
        assert_eq!(what(&message(&format!("{TRANSFER}/Put"), OWN, "")), None);
    }

    #[test]
    fn replies_are_xml_relate_to_the_request_and_are_not_much_longer() {
        let (endpoint, asked) = (endpoint(), endpoint().asked(probe("").as_bytes()).unwrap());
        let reply = endpoint.reply(&asked, [9; 16], "http://192.0.2.1:5357/x").unwrap();
        let document = Document::parse(&reply).unwrap();
        let of = |name| document.descendants().find(|node| node.has_tag_name((WSA, name))).map(text);
        assert_eq!(of("RelatesTo"), Some("urn:uuid:5a2d3f0c-3a1c-4b57-9a4c-8f6a2d5b7c11"));
        assert_eq!(of("Address"), Some(OWN));
        assert!(endpoint.reply(&Asked { bytes: 300, ..asked.clone() }, [9; 16], "").is_none());
        let get = Asked { what: What::Get, ..asked };
        let metadata = endpoint.metadata(&get, [9; 16]);
        let document = Document::parse(&metadata).unwrap();
        let computer = document.descendants().find(|node| node.has_tag_name((PUB, "Computer"))).map(text);
        assert_eq!(computer, Some("FILES/Workgroup:WORKGROUP"));
        assert_eq!(endpoint.path(), "/01020304-0506-0708-090a-0b0c0d0e0f10");
    }

    #[test]
    fn hostile_xml_is_not_answered() {
        let long = format!("<wsd:Types>{}</wsd:Types>", "wsdp:Device ".repeat(400));
        let deep = format!("{}{}", "<a>".repeat(300), "</a>".repeat(300));
        for hostile in [
            probe(&long),
            probe(&deep),
            probe("").replace("?>", "?><!DOCTYPE a [<!ENTITY a \"b\">]>"),
            probe("<wsd:Types>&a;</wsd:Types>"),
            probe("").replace("urn:uuid:5a2d", &"x".repeat(200)),
            probe("").replace("wsa:MessageID", "wsa:Message"),
            String::new(),
        ] {
            assert_eq!(what(&hostile), None, "{hostile}");
        }
        let forged = "urn:x&lt;/wsa:RelatesTo&gt;&quot;";
        let asked = endpoint().asked(probe("").replace("urn:uuid:5a2d3f0c", forged).as_bytes()).unwrap();
        let reply = endpoint().reply(&asked, [9; 16], "").unwrap();
        assert_eq!(
            Document::parse(&reply)
                .unwrap()
                .descendants()
                .filter(|node| node.has_tag_name((WSA, "RelatesTo")))
                .count(),
            1
        );
    }

    #[test]
    fn a_message_that_comes_again_is_known() {
        let asked = |n: usize| Asked { what: What::Probe, id: n.to_string(), bytes: 0 };
        let mut remembered = Remembered::default();
        assert!(remembered.is_new(&asked(0)) && !remembered.is_new(&asked(0)));
        assert!((1..=REMEMBERED).all(|n| remembered.is_new(&asked(n))));
        assert!(remembered.is_new(&asked(0)), "it was forgotten");
        assert_eq!(remembered.0.len(), REMEMBERED);
    }

    proptest! {
        #[test]
        fn nothing_that_is_received_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let mut bytes = probe("<wsd:Types>wsdp:Device</wsd:Types>").into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(cut.index(bytes.len()) + 1);
            if let Some(asked) = endpoint().asked(&bytes) {
                let reply = endpoint().reply(&asked, [9; 16], "http://192.0.2.1:5357/x");
                prop_assert!(reply.is_none_or(|reply| Document::parse(&reply).is_ok()));
            }
        }
    }

    #[test]
    fn no_bytes_panic() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let _ = endpoint().asked(bytes);
        });
    }
}
