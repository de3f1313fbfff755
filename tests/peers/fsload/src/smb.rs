//! SMB 3.1.1 client side: negotiate, NTLMv2, channels, signing, encryption, and the requests.
use crate::{fail, payload, Cursor, Done, Opt, Out, Proto, Work};
use hmac::{Hmac, Mac};
// not ring's, which is slower than the servers under test
use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_128_GCM, AES_256_GCM};
use std::io::{Read, Write};
use std::net::TcpStream;

const NEGOTIATE: u16 = 0;
const SESSION_SETUP: u16 = 1;
const TREE_CONNECT: u16 = 3;
const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const READ: u16 = 8;
const WRITE: u16 = 9;
const ECHO: u16 = 13;
const PENDING: u32 = 0x103;
const MORE_PROCESSING: u32 = 0xC0000016;

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(b[at..at + 2].try_into().unwrap())
}
fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}
fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().unwrap())
}
fn utf16(s: &str) -> Vec<u8> {
    s.encode_utf16().flat_map(u16::to_le_bytes).collect()
}
fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let mut m = Hmac::<md5::Md5>::new_from_slice(key).unwrap();
    parts.iter().for_each(|p| m.update(p));
    m.finalize().into_bytes().into()
}
fn random<const N: usize>() -> [u8; N] {
    let mut b = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut b).unwrap();
    b
}
/// SP800-108 counter mode with HMAC-SHA256.
fn kdf(key: &[u8], label: &str, context: &[u8], len: usize) -> Vec<u8> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    let mut m = ring::hmac::Context::with_key(&key);
    m.update(&[0, 0, 0, 1]);
    m.update(label.as_bytes());
    m.update(&[0, 0]);
    m.update(context);
    m.update(&(len as u32 * 8).to_be_bytes());
    m.sign().as_ref()[..len].to_vec()
}
fn gcm(key: &[u8]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(if key.len() == 16 { &AES_128_GCM } else { &AES_256_GCM }, key).unwrap())
}

/// What one core spends on a MiB in messages of `bs` bytes, in microseconds: GMAC, GCM sealing, GCM opening; the middle of
/// many short measurements.
pub fn crypto_costs(bs: usize) -> [f64; 3] {
    let key = gcm(&[1; 16]);
    let nonce = || Nonce::assume_unique_for_key([2; 12]);
    let mut data = payload()[..bs].to_vec();
    let rounds = (4 << 20) / bs;
    [0, 1, 2].map(|what| {
        let mut costs: Vec<f64> = (0..51)
            .map(|_| {
                let start = std::time::Instant::now();
                for _ in 0..rounds {
                    match what {
                        0 => drop(key.seal_in_place_separate_tag(nonce(), Aad::from(&data), &mut []).unwrap()),
                        1 => drop(key.seal_in_place_separate_tag(nonce(), Aad::from([0; 32]), &mut data).unwrap()),
                        _ => drop(key.open_in_place_separate_tag(nonce(), Aad::from([0; 32]), &[0; 16], &mut data)),
                    }
                }
                start.elapsed().as_secs_f64() * 1e6 / (rounds * bs) as f64 * 1048576.0
            })
            .collect();
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    })
}

enum Signer {
    Cmac(cmac::Cmac<aes::Aes128>),
    Gmac(Box<LessSafeKey>),
}

impl Signer {
    fn new(gmac: bool, key: &[u8]) -> Signer {
        if gmac {
            Signer::Gmac(Box::new(gcm(key)))
        } else {
            Signer::Cmac(cmac::Mac::new_from_slice(key).unwrap())
        }
    }
    /// The signature of a message; its field is zero afterwards.
    fn tag(&self, msg: &mut [u8], by_server: bool) -> [u8; 16] {
        msg[48..64].fill(0);
        match self {
            Signer::Cmac(c) => {
                let mut c = c.clone();
                c.update(msg);
                c.finalize().into_bytes().into()
            }
            Signer::Gmac(k) => {
                let mut n = [0; 12];
                n[..8].copy_from_slice(&msg[24..32]);
                n[8] = by_server as u8;
                k.seal_in_place_separate_tag(Nonce::assume_unique_for_key(n), Aad::from(&msg), &mut []).unwrap().as_ref().try_into().unwrap()
            }
        }
    }
    fn sign(&self, msg: &mut [u8]) {
        msg[16] |= 8;
        let tag = self.tag(msg, false);
        msg[48..64].copy_from_slice(&tag);
    }
    fn check(&self, msg: &mut [u8]) {
        let signature: [u8; 16] = msg[48..64].try_into().unwrap();
        if self.tag(msg, true) != signature {
            fail("a reply with a wrong signature");
        }
    }
}

struct Sealer {
    seal: LessSafeKey,
    open: LessSafeKey,
    nonce: [u8; 12],
}

impl Sealer {
    /// Room for the transform header, then the message.
    fn seal(&mut self, session: u64, frame: &mut [u8]) {
        let (h, msg) = frame.split_at_mut(52);
        let n = u64_at(&self.nonce, 0) + 1;
        self.nonce[..8].copy_from_slice(&n.to_le_bytes());
        h.fill(0);
        h[..4].copy_from_slice(b"\xfdSMB");
        h[20..32].copy_from_slice(&self.nonce);
        h[36..40].copy_from_slice(&(msg.len() as u32).to_le_bytes());
        h[42] = 1;
        h[44..52].copy_from_slice(&session.to_le_bytes());
        let tag = self.seal.seal_in_place_separate_tag(Nonce::assume_unique_for_key(self.nonce), Aad::from(&h[20..52]), msg).unwrap();
        h[4..20].copy_from_slice(tag.as_ref());
    }
}

struct Session {
    id: u64,
    signing: Vec<u8>,
    guid: [u8; 16],
    keys: Option<(Vec<u8>, Vec<u8>)>,
    tree: u32,
    fid: [u8; 16],
}

pub struct Smb {
    sock: Option<TcpStream>,
    mid: u64,
    credits: u32,
    session: u64,
    tree: u32,
    fid: [u8; 16],
    signer: Option<Signer>,
    sealer: Option<Sealer>,
    preauth: [u8; 64],
    gmac: bool,
    cipher: u16,
    work: Work,
    whole: bool,
    bs: usize,
    cursor: Option<Cursor>,
    slot_of: Vec<u32>,
    steps: Vec<(usize, [u8; 16], u64)>, // where a slot is in its cycle of metadata requests
    index: usize,
    within: String,
}

impl Smb {
    fn header(&mut self, cmd: u16, len: usize) -> [u8; 64] {
        let charge = if matches!(cmd, READ | WRITE) { (len.max(1) - 1) / 65536 + 1 } else { 1 };
        let mut h = [0; 64];
        h[..6].copy_from_slice(b"\xfeSMB\x40\x00");
        h[6..8].copy_from_slice(&(charge as u16).to_le_bytes());
        h[12..14].copy_from_slice(&cmd.to_le_bytes());
        h[14..16].copy_from_slice(&((charge as u16 + 128).min(8192)).to_le_bytes());
        h[24..32].copy_from_slice(&self.mid.to_le_bytes());
        h[36..40].copy_from_slice(&self.tree.to_le_bytes());
        h[40..48].copy_from_slice(&self.session.to_le_bytes());
        self.mid += charge as u64;
        self.credits = self.credits.saturating_sub(charge as u32);
        h
    }

    /// The message as it goes out, length prefix included. A plain write's data stays in payload().
    fn wrap(&mut self, msg: &[u8], data: usize, out: &mut Out) {
        let len = msg.len() + data;
        if self.sealer.is_none() && self.signer.is_none() {
            out.put(&(len as u32).to_be_bytes());
            out.put(msg);
            if data > 0 {
                out.put_payload(data);
            }
            return;
        }
        const ROOM: usize = 4 + 52; // prefix and transform header
        let mut frame = out.frame(ROOM + msg.len(), data);
        frame[ROOM..ROOM + msg.len()].copy_from_slice(msg);
        let start = if self.sealer.is_some() { 4 } else { ROOM };
        match (&mut self.sealer, &self.signer) {
            (Some(s), _) => s.seal(self.session, &mut frame[4..]),
            (None, signer) => signer.as_ref().unwrap().sign(&mut frame[ROOM..]),
        }
        let len = (frame.len() - start) as u32;
        frame[start - 4..start].copy_from_slice(&len.to_be_bytes());
        if data > 0 {
            out.put_frame(frame, start - 4);
        } else {
            out.put(&frame[start - 4..]);
        }
    }

    fn unwrap<'a>(&self, frame: &'a mut [u8]) -> &'a mut [u8] {
        if frame[0] != 0xfd {
            return frame;
        }
        let s = self.sealer.as_ref().unwrap_or_else(|| fail("an encrypted reply without keys"));
        let (h, body) = frame.split_at_mut(52);
        let nonce = Nonce::assume_unique_for_key(h[20..32].try_into().unwrap());
        let opened = s.open.open_in_place_separate_tag(nonce, Aad::from(&h[20..52]), &h[4..20], body);
        opened.unwrap_or_else(|_| fail("a reply does not decrypt"))
    }

    /// One request and its reply, in blocking mode.
    fn call(&mut self, cmd: u16, body: &[u8], binding: Option<&Signer>) -> (u32, Vec<u8>) {
        let mut msg = self.header(cmd, 0).to_vec();
        msg.extend_from_slice(body);
        let mut bytes = vec![];
        if let Some(s) = binding {
            s.sign(&mut msg);
        }
        let setup = cmd <= SESSION_SETUP;
        if setup {
            self.hash(&msg);
            bytes.extend_from_slice(&(msg.len() as u32).to_be_bytes());
            bytes.extend_from_slice(&msg);
        } else {
            let mut out = Out::default();
            self.wrap(&msg, 0, &mut out);
            bytes = out.bytes();
        }
        self.sock.as_ref().unwrap().write_all(&bytes).unwrap();
        loop {
            let mut sock = self.sock.as_ref().unwrap();
            let mut n = [0; 4];
            sock.read_exact(&mut n).unwrap_or_else(|e| fail(&format!("command {cmd}: {e}")));
            let mut frame = vec![0; u32::from_be_bytes(n) as usize];
            sock.read_exact(&mut frame).unwrap();
            let reply = self.unwrap(&mut frame).to_vec();
            self.credits += u16_at(&reply, 14) as u32;
            let status = u32_at(&reply, 8);
            if status == PENDING {
                continue;
            }
            if setup && status != 0 || cmd == NEGOTIATE {
                self.hash(&reply);
            }
            return (status, reply);
        }
    }

    fn must(&mut self, cmd: u16, body: &[u8]) -> Vec<u8> {
        let (status, reply) = self.call(cmd, body, None);
        if status != 0 {
            fail(&format!("command {cmd}: status {status:08x}"));
        }
        reply
    }

    fn set_keys(&mut self, keys: &Option<(Vec<u8>, Vec<u8>)>, index: usize) {
        let mut nonce = [0; 12];
        nonce[8..].copy_from_slice(&(index as u32).to_le_bytes());
        self.sealer = keys.as_ref().map(|(seal, open)| Sealer { seal: gcm(seal), open: gcm(open), nonce });
    }

    fn hash(&mut self, msg: &[u8]) {
        let mut c = ring::digest::Context::new(&ring::digest::SHA512);
        c.update(&self.preauth);
        c.update(msg);
        self.preauth = c.finish().as_ref().try_into().unwrap();
    }

    fn negotiate(&mut self, o: &Opt, guid: &[u8; 16]) {
        let mut b = vec![36, 0, 1, 0, 1, 0, 0, 0, 0x4f, 0, 0, 0];
        b.extend_from_slice(guid);
        b.extend_from_slice(&[0x68, 0, 0, 0]); // contexts: 64 + 36 + 2, rounded up to 8
        let signing: &[u16] = match o.signing {
            1 => &[1],
            2 => &[2],
            _ => &[2, 1],
        };
        b.extend_from_slice(&(if signing.is_empty() { 2u16 } else { 3 }).to_le_bytes());
        b.extend_from_slice(&[0, 0, 0x11, 3]);
        b.resize(0x68 - 64, 0);
        let mut context = |kind: u16, data: &[u8]| {
            b.resize(b.len().next_multiple_of(8), 0);
            b.extend_from_slice(&kind.to_le_bytes());
            b.extend_from_slice(&(data.len() as u16).to_le_bytes());
            b.extend_from_slice(&[0; 4]);
            b.extend_from_slice(data);
        };
        context(1, &[&[1, 0, 32, 0, 1, 0][..], &random::<32>()].concat());
        context(2, &[1, 0, o.cipher as u8, 0]);
        let list: Vec<u8> = signing.iter().flat_map(|s| s.to_le_bytes()).collect();
        context(8, &[&[signing.len() as u8, 0][..], &list].concat());
        let r = self.must(NEGOTIATE, &b);
        if u16_at(&r, 64 + 4) != 0x311 {
            fail("the server does not speak SMB 3.1.1");
        }
        let mut at = u32_at(&r, 64 + 60) as usize;
        for _ in 0..u16_at(&r, 64 + 6) {
            at = at.next_multiple_of(8);
            let (kind, len) = (u16_at(&r, at), u16_at(&r, at + 2) as usize);
            match kind {
                2 => self.cipher = u16_at(&r, at + 10),
                8 => self.gmac = u16_at(&r, at + 10) == 2,
                _ => {}
            }
            at += 8 + len;
        }
    }

    /// Log in, or bind this connection to a session another one opened.
    fn session_setup(&mut self, o: &Opt, bind: Option<&Session>) -> ([u8; 16], u16) {
        let setup = |token: &[u8]| {
            let mut b = vec![25, 0, bind.is_some() as u8, if o.sign { 2 } else { 1 }, 0, 0, 0, 0, 0, 0, 0, 0, 88, 0];
            b.extend_from_slice(&(token.len() as u16).to_le_bytes());
            b.extend_from_slice(&[0; 8]);
            b.extend_from_slice(token);
            b
        };
        let signer = bind.map(|s| Signer::new(self.gmac, &s.signing));
        if let Some(s) = bind {
            self.session = s.id;
        }
        let flags = 0x0208_8205u32 | 0xa000_0000; // unicode, ntlm, extended security, target info, 128, 56 ...
        let mut hello = b"NTLMSSP\0\x01\0\0\0".to_vec();
        hello.extend_from_slice(&flags.to_le_bytes());
        hello.extend_from_slice(&[0; 24]);
        let oid = [0x06, 10, 0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
        let init = tlv(0x30, &[tlv(0xa0, &tlv(0x30, &oid)), tlv(0xa2, &tlv(4, &hello))].concat());
        let token = tlv(0x60, &[&[6, 6, 0x2b, 6, 1, 5, 5, 2][..], &tlv(0xa0, &init)].concat());
        let (status, r) = self.call(SESSION_SETUP, &setup(&token), signer.as_ref());
        if status != MORE_PROCESSING {
            fail(&format!("session setup: status {status:08x}"));
        }
        self.session = u64_at(&r, 40);
        let at = r.windows(8).position(|w| w == b"NTLMSSP\0").unwrap_or_else(|| fail("no NTLM challenge"));
        let c = &r[at..];
        let (len, off) = (u16_at(c, 40) as usize, u32_at(c, 44) as usize);
        let (challenge, info) = (&c[24..32], &c[off..off + len]);

        let mut hash = <md4::Md4 as md4::Digest>::new();
        md4::Digest::update(&mut hash, utf16(&o.pass));
        let ntlm2 = hmac_md5(&md4::Digest::finalize(hash), &[&utf16(&o.user.to_uppercase())]);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let mut time = (now.as_nanos() as u64 / 100 + 116444736000000000).to_le_bytes().to_vec();
        let mut pos = 0;
        while pos + 4 <= info.len() && u16_at(info, pos) != 0 {
            if u16_at(info, pos) == 7 {
                time = info[pos + 4..pos + 12].to_vec();
            }
            pos += 4 + u16_at(info, pos + 2) as usize;
        }
        let blob = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &time, &random::<8>(), &[0; 4], info, &[0; 4]].concat();
        let proof = hmac_md5(&ntlm2, &[challenge, &blob]);
        let key = hmac_md5(&ntlm2, &[&proof]);
        let response = [&proof[..], &blob].concat();
        let user = utf16(&o.user);
        let mut auth = b"NTLMSSP\0\x03\0\0\0".to_vec();
        let mut data = vec![];
        for field in [&[][..], &response, &[], &user, &[], &[]] {
            auth.extend_from_slice(&[(field.len() as u16).to_le_bytes(), (field.len() as u16).to_le_bytes()].concat());
            auth.extend_from_slice(&(64 + data.len() as u32).to_le_bytes());
            data.extend_from_slice(field);
        }
        auth.extend_from_slice(&flags.to_le_bytes());
        auth.extend_from_slice(&data);
        let token = tlv(0xa1, &tlv(0x30, &tlv(0xa2, &tlv(4, &auth))));
        let (status, r) = self.call(SESSION_SETUP, &setup(&token), signer.as_ref());
        if status != 0 {
            fail(&format!("login: status {status:08x}"));
        }
        (key, u16_at(&r, 64 + 2))
    }

    fn create(&mut self, name: &str, access: u32, disposition: u8, options: u32) -> Vec<u8> {
        let name = utf16(name);
        let mut b = vec![57, 0, 0, 0, 2, 0, 0, 0];
        b.extend_from_slice(&[0; 16]);
        b.extend_from_slice(&access.to_le_bytes());
        b.extend_from_slice(&[0x80, 0, 0, 0, 7, 0, 0, 0, disposition, 0, 0, 0]);
        b.extend_from_slice(&options.to_le_bytes());
        b.extend_from_slice(&[120, 0]);
        b.extend_from_slice(&(name.len() as u16).to_le_bytes());
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&name);
        b
    }

    fn read_body(&self, fid: &[u8; 16], at: u64, len: usize) -> Vec<u8> {
        let mut b = vec![49, 0, 0x50, 0];
        b.extend_from_slice(&(len as u32).to_le_bytes());
        b.extend_from_slice(&at.to_le_bytes());
        b.extend_from_slice(fid);
        b.resize(49, 0);
        b
    }

    fn write_body(&self, fid: &[u8; 16], at: u64, len: usize) -> Vec<u8> {
        let mut b = vec![49, 0, 0x70, 0];
        b.extend_from_slice(&(len as u32).to_le_bytes());
        b.extend_from_slice(&at.to_le_bytes());
        b.extend_from_slice(fid);
        b.resize(48, 0);
        b
    }

    /// Make the test file as long as asked.
    fn lay_out(&mut self, o: &Opt) -> [u8; 16] {
        let body = self.create(&o.file, 0x0012_019f, 3, 0x40);
        let r = self.must(CREATE, &body);
        let fid: [u8; 16] = r[128..144].try_into().unwrap();
        let mut at = u64_at(&r, 64 + 48).min(o.size) & !0xffff;
        while at < o.size && !matches!(o.work, Work::Meta | Work::Open | Work::Echo) {
            let mut body = self.write_body(&fid, at, 65536);
            body.extend_from_slice(&payload()[..65536]);
            self.must(WRITE, &body);
            at += 65536;
        }
        fid
    }
}

impl Out {
    fn bytes(&self) -> Vec<u8> {
        self.segs.iter().flat_map(|s| if let crate::Seg::Own(v, _) = s { v.clone() } else { vec![] }).collect()
    }
}

fn tlv(tag: u8, data: &[u8]) -> Vec<u8> {
    let n = data.len();
    let mut v = vec![tag];
    match n {
        0..=127 => v.push(n as u8),
        128..=255 => v.extend_from_slice(&[0x81, n as u8]),
        _ => v.extend_from_slice(&[0x82, (n >> 8) as u8, n as u8]),
    }
    v.extend_from_slice(data);
    v
}

impl Proto for Smb {
    fn submit(&mut self, slot: usize, out: &mut Out) -> bool {
        let need = if matches!(self.work, Work::Read | Work::Write) { (self.bs - 1) / 65536 + 1 } else { 1 };
        if (self.credits as usize) < need {
            return false;
        }
        let mid = self.mid;
        let (cmd, body) = match self.work {
            Work::Echo => (ECHO, vec![4, 0, 0, 0]),
            Work::Read => {
                let at = self.cursor.as_mut().unwrap().next();
                (READ, self.read_body(&self.fid, at, self.bs))
            }
            Work::Write => {
                let at = self.cursor.as_mut().unwrap().next();
                (WRITE, self.write_body(&self.fid, at, self.bs))
            }
            Work::Open => match self.steps[slot] {
                (0, _, _) => {
                    let number = self.cursor.as_mut().unwrap().next();
                    let dir = if self.within.is_empty() { String::new() } else { format!("{}\\", self.within) };
                    (CREATE, self.create(&format!("{dir}FILE {number:07}.TXT"), 0x0012_0089, 1, 0x40))
                }
                (_, fid, _) => (CLOSE, [&[24, 0, 0, 0, 0, 0, 0, 0][..], &fid].concat()),
            },
            // create, close, open, close, open to delete, close
            Work::Meta => match self.steps[slot] {
                (0, _, n) => (CREATE, self.create(&format!("m-{}-{}-{slot}-{}", std::process::id(), self.index, n % 64), 0x0012_019f, 2, 0x40)),
                (2, _, n) => (CREATE, self.create(&format!("m-{}-{}-{slot}-{}", std::process::id(), self.index, n % 64), 0x0012_0089, 1, 0x40)),
                (4, _, n) => (CREATE, self.create(&format!("m-{}-{}-{slot}-{}", std::process::id(), self.index, n % 64), 0x0001_0080, 1, 0x1040)),
                (_, fid, _) => (CLOSE, [&[24, 0, 0, 0, 0, 0, 0, 0][..], &fid].concat()),
            },
        };
        self.slot_of[(mid & 0xffff) as usize] = slot as u32;
        let data = if self.work == Work::Write { self.bs } else { 0 };
        let mut msg = self.header(cmd, if data > 0 || cmd == READ { self.bs } else { 0 }).to_vec();
        msg.extend_from_slice(&body);
        self.wrap(&msg, data, out);
        true
    }

    fn complete(&mut self, frame: &mut [u8]) -> Done {
        let r = self.unwrap(frame);
        let (status, cmd, mid) = (u32_at(r, 8), u16_at(r, 12), u64_at(r, 24));
        let credits = u16_at(r, 14) as u32;
        let fid = if cmd == CREATE && status == 0 { Some(<[u8; 16]>::try_from(&r[128..144]).unwrap()) } else { None };
        let got = if cmd == READ && status == 0 { u32_at(r, 68) as usize } else { self.bs };
        self.credits += credits;
        if mid == u64::MAX || status == PENDING {
            return Done::Nothing;
        }
        if let (true, Some(signer), None) = (self.whole, &self.signer, &self.sealer) {
            signer.check(r);
        }
        if status != 0 {
            fail(&format!("command {cmd}: status {status:08x}"));
        }
        if got != self.bs {
            fail(&format!("short read: {got}"));
        }
        let slot = self.slot_of[(mid & 0xffff) as usize] as usize;
        if matches!(self.work, Work::Meta | Work::Open) {
            let s = &mut self.steps[slot];
            s.0 += 1;
            s.1 = fid.unwrap_or_default();
            if s.0 < if self.work == Work::Meta { 6 } else { 2 } {
                return Done::Step(slot);
            }
            *s = (0, [0; 16], s.2 + 1);
        }
        Done::Op(slot)
    }

    fn head_only(&self) -> bool {
        self.sealer.is_none() && !self.whole
    }
}

pub fn connect(o: &Opt) -> Vec<(TcpStream, Box<dyn Proto>)> {
    let mut all: Vec<(TcpStream, Box<dyn Proto>)> = vec![];
    let mut first: Option<Session> = None;
    for index in 0..o.conns {
        let sock = TcpStream::connect((o.server.as_str(), o.port)).unwrap_or_else(|e| fail(&format!("connect: {e}")));
        sock.set_nodelay(true).unwrap();
        let slots = (o.qd / o.conns).max(1);
        let mut c = Smb {
            sock: Some(sock),
            mid: 0,
            credits: 1,
            session: 0,
            tree: 0,
            fid: [0; 16],
            signer: None,
            sealer: None,
            preauth: [0; 64],
            gmac: false,
            cipher: 0,
            work: o.work,
            whole: o.whole,
            bs: o.bs,
            cursor: Some(Cursor::new(o, index)),
            slot_of: vec![0; 65536],
            steps: vec![(0, [0; 16], 0); slots],
            index,
            within: o.within.clone(),
        };
        let bind = if o.multichannel { first.as_ref() } else { None };
        let guid = bind.map_or_else(random, |s| s.guid);
        c.negotiate(o, &guid);
        c.set_keys(&bind.and_then(|s| s.keys.clone()), index);
        let (key, flags) = c.session_setup(o, bind);
        let signing = kdf(&key, "SMBSigningKey", &c.preauth, 16);
        let len = if c.cipher >= 3 { 32 } else { 16 };
        let keys = match bind {
            Some(s) => s.keys.clone(),
            None if o.encrypt || flags & 4 != 0 => Some((kdf(&key, "SMBC2SCipherKey", &c.preauth, len), kdf(&key, "SMBS2CCipherKey", &c.preauth, len))),
            None => None,
        };
        c.set_keys(&keys, index);
        c.signer = Some(Signer::new(c.gmac, &signing));
        match bind {
            Some(s) => (c.tree, c.fid) = (s.tree, s.fid),
            None => {
                let path = utf16(&format!("\\\\{}\\{}", o.server, o.share));
                let mut b = vec![9, 0, 0, 0, 72, 0];
                b.extend_from_slice(&(path.len() as u16).to_le_bytes());
                b.extend_from_slice(&path);
                let r = c.must(TREE_CONNECT, &b);
                c.tree = u32_at(&r, 36);
                c.fid = c.lay_out(o);
            }
        }
        if !o.sign {
            c.signer = None;
        }
        while c.credits < 2 * slots as u32 * (o.bs as u32).div_ceil(65536) && c.credits < 4096 {
            let before = c.credits;
            c.must(ECHO, &[4, 0, 0, 0]);
            if c.credits <= before {
                break;
            }
        }
        if first.is_none() {
            first = Some(Session { id: c.session, signing, guid, keys, tree: c.tree, fid: c.fid });
        }
        if index == 0 {
            eprintln!(
                "smb: signing {} ({}), encryption {}, {} credits",
                if o.sign { "on" } else { "off" },
                if c.gmac { "AES-128-GMAC" } else { "AES-128-CMAC" },
                if c.sealer.is_some() { ["", "", "AES-128-GCM", "", "AES-256-GCM"][c.cipher as usize] } else { "off" },
                c.credits
            );
        }
        let sock = c.sock.take().unwrap();
        all.push((sock, Box::new(c)));
    }
    all
}
