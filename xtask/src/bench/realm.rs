//! A realm with a KDC (tests/lab/kdc-lab) in a network namespace, a ticket, and certificates.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{self, Command, Stdio};

use super::afterwards::Scratch;
use super::server::{Server, Settings};
use super::words;
use crate::command::{output, ran};
use crate::repository;

/// Encryption types of session keys.
pub(super) const SHA1: &str = "aes256-cts-hmac-sha1-96";
pub(super) const SHA384: &str = "aes256-cts-hmac-sha384-192";
const ENCTYPES: [&str; 2] = [SHA1, SHA384];
/// The address of the files server in that lab.
const ADDRESS: [u8; 4] = [10, 78, 0, 2];
/// A user of the lab.
const USER: &str = "alice";
const USER_PASSWORD: &str = "alice-Passw0rd";

pub(super) struct Realm {
    namespace: String,
    /// The keys of the server.
    keytab: String,
    /// The krb5.conf of the lab.
    config: String,
    /// The certificates. When it is dropped, the lab ends.
    pki: Scratch,
}

impl Realm {
    /// Starts the lab, and gets the tickets of a user.
    pub(super) fn make() -> Result<Self, String> {
        let lab = repository::top().join("tests/lab/kdc-lab");
        let namespace = format!("anabranch-kdc-{}", process::id());
        let down = format!("KDC_LAB_NETNS={namespace} '{}' down >/dev/null;", lab.display());
        let pki = Scratch::ended_by(None, |_| down).map_err(|e| format!("a scratch folder: {e}"))?;
        let of_lab = |arguments: &[&str]| {
            let mut command = Command::new(&lab);
            command.args(arguments).env("KDC_LAB_NETNS", &namespace);
            command
        };
        output(&mut of_lab(&["up"]))?;
        let environment = output(&mut of_lab(&["env"]))?;
        let value = |name: &str| {
            let mut words = environment.split_whitespace().filter_map(|word| word.split_once('='));
            let found = words.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
            found.ok_or_else(|| format!("kdc-lab says no {name}"))
        };
        let (keytab, config) = (value("LAB_KEYTAB")?, value("KRB5_CONFIG")?);
        for enctype in ENCTYPES {
            make_ticket(of_lab(&["exec"]), pki.path(), &config, enctype)?;
        }
        certify(pki.path())?;
        Ok(Self { namespace, keytab, config, pki })
    }

    /// Starts a server in the namespace, with the keys of the realm and a share in memory.
    pub(super) fn serve(&self, program: &Path) -> Result<Server, String> {
        let settings = Settings {
            in_memory: true,
            listen: [(ADDRESS, 0).into(); 2],
            before: words(&format!("ip netns exec {}", self.namespace)),
            lines: self.lines(),
            share_lines: share_lines(),
            ..Settings::default()
        };
        let server = Server::start(program, &settings)?;
        self.give_keytab(program, &server)?;
        Ok(server)
    }

    /// A script of tests/peers in the namespace, which serves with the keys of the realm.
    pub(super) fn peer(&self, script: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(script);
        command.env("KRB5_CONFIG", &self.config).env("KEYTAB", &self.keytab).env("KUSER", USER);
        command.env("ADDRESS", Ipv4Addr::from(ADDRESS).to_string());
        command
    }

    /// The file with the certificate that the client trusts.
    pub(super) fn authority(&self) -> String {
        self.pki.path().join("server.pem").display().to_string()
    }

    /// Lines of the server's configuration.
    fn lines(&self) -> String {
        let pki = self.pki.path().display();
        format!(
            "account-realm = [\"LAB.TEST\"]\nnfs-squash = \"none\"\nnfs-tls = \"offered\"\ncontrol-certificate = \
             \"{pki}/server.pem\"\ncontrol-key = \"{pki}/server.key\"\n"
        )
    }

    /// Gives a running server the keys of the realm.
    fn give_keytab(&self, program: &Path, server: &Server) -> Result<(), String> {
        let state = server.state();
        let mut import = Command::new(program);
        import.args(["domain", "import", "--keytab", &self.keytab, "--state"]).arg(&state);
        output(&mut import)?;
        let mut reload = self.client(program, ENCTYPES[0]);
        output(reload.arg("reload").arg("--state").arg(&state)).map(drop)
    }

    /// A program in the namespace, with the ticket whose session key is of this type.
    pub(super) fn client(&self, program: &Path, enctype: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command.env("KRB5CCNAME", credential_cache(self.pki.path(), enctype));
        command
    }
}

/// Lines of the server's share, and the account of the tickets.
fn share_lines() -> String {
    "nfs-security = [\"sys\", \"krb5\", \"krb5i\", \"krb5p\"]\n[[user]]\nname = \"alice\"\npassword = \
     \"bench-Alice1\"\nuid = 1000\ngid = 1000\n"
        .to_owned()
}

fn credential_cache(folder: &Path, enctype: &str) -> String {
    format!("FILE:{}/{enctype}.ccache", folder.display())
}

/// Gets tickets for the server over both protocols. Their session keys are of this type, because the client permits no other. `exec` runs its further
/// arguments in the lab.
fn make_ticket(mut exec: Command, folder: &Path, config: &str, enctype: &str) -> Result<(), String> {
    let lab = fs::read_to_string(config).map_err(|e| format!("{config}: {e}"))?;
    let own = folder.join(format!("{enctype}.conf"));
    let permitted = format!("[libdefaults]\n  permitted_enctypes = {enctype}");
    fs::write(&own, lab.replacen("[libdefaults]", &permitted, 1))
        .map_err(|e| format!("{}: {e}", own.display()))?;
    exec.arg("env").arg(format!("KRB5_CONFIG={}", own.display()));
    exec.arg(format!("KRB5CCNAME={}", credential_cache(folder, enctype)));
    exec.args([
        "sh",
        "-c",
        &format!("echo {USER_PASSWORD} | kinit {USER} && kvno nfs/files.lab.test cifs/files.lab.test"),
    ]);
    output(&mut exec).map(drop)
}

/// Makes a key and a certificate that has signed itself.
fn certify(folder: &Path) -> Result<(), String> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
    openssl.args(["-days", "2", "-subj", "/CN=files.lab.test"]);
    openssl.args(["-addext", "subjectAltName=DNS:files.lab.test", "-addext", "basicConstraints=CA:FALSE"]);
    openssl.arg("-keyout").arg(folder.join("server.key")).arg("-out").arg(folder.join("server.pem"));
    ran(openssl.stderr(Stdio::null()))
}
