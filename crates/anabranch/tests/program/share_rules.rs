//! Who may use which share: the rules in the file of a server, and those by command.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::needs;
use crate::nfs::{Nfs, Status};
use crate::nfs4::Nfs4;
use crate::server::{Server, path, program};
use nfs_wire::v4::open::ShareDeny;
use nfs_wire::v4::status::Status as Status4;

const ROOT: (u32, u32) = (0, 0);

/// A server with this file beside what every test needs.
struct Machine {
    directory: TempDir,
    server: Server,
}

impl Machine {
    /// These keys are the last of the one share.
    fn start(share: &str) -> Self {
        Self::with("", share)
    }

    /// The same, and these of the server.
    fn with(settings: &str, share: &str) -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let config = path(&directory, "anabranch.toml");
        let text = format!(
            "{settings}smb = \"127.0.0.1:0\"\nnfs = \"127.0.0.1:0\"\ncontrol = \"127.0.0.1:0\"\nstate = \"{}\"\n\
             [[user]]\nname = \"anna\"\npassword = \"hush-hush\"\nuid = 1000\n\
             [[share]]\nname = \"data\"\ndirectory = \"{}\"\n{share}\n",
            path(&directory, "state"),
            path(&directory, "data"),
        );
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let server = Server::start_logging(&["serve", "--config", &config], log.into());
        Self { directory, server }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    fn nfs(&self) -> Nfs {
        Nfs::connect(self.server.address("nfs"))
    }

    /// What smbclient says of a share; None where there is none.
    fn smb(&self, share: &str, commands: &str) -> Option<String> {
        let (_, port) = self.server.address("smb").rsplit_once(':').unwrap();
        let share = format!("//127.0.0.1/{share}");
        let ran = Command::new("smbclient")
            .args([&share, "-p", port, "-U", "anna%hush-hush", "-c", commands])
            .stdin(Stdio::null())
            .output();
        let Output { stdout, stderr, .. } = needs::installed("smbclient", ran)?;
        Some(String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    fn smb_list(&self) -> Option<String> {
        let (_, port) = self.server.address("smb").rsplit_once(':').unwrap();
        let arguments = ["-p", port, "-U", "anna%hush-hush", "-g", "-L", "127.0.0.1"];
        let ran = Command::new("smbclient").args(arguments).stdin(Stdio::null()).output();
        let listed = needs::installed("smbclient", ran)?;
        Some(String::from_utf8_lossy(&listed.stdout).into_owned())
    }

    fn is_smb_refused(&self, share: &str) {
        if let Some(said) = self.smb(share, "ls") {
            assert!(said.contains("NT_STATUS_ACCESS_DENIED"), "{said}");
        }
    }

    fn is_smb_served(&self, share: &str) {
        if let Some(said) = self.smb(share, "ls") {
            assert!(said.contains("blocks"), "{said}");
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let state = path(&self.directory, "state");
        program(arguments).args(["--state", &state]).output().unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }
}

#[test]
fn a_share_is_for_the_networks_that_its_file_names() {
    let machine = Machine::start(
        "[[share.client]]\nnetwork = \"192.0.2.0/24\"\n[[share.client]]\nnetwork = \"nobody.invalid\"\n",
    );
    assert_eq!(machine.nfs().mount(ROOT, "/data"), Err(Status::ACCES));
    machine.is_smb_refused("data");
    let machine = Machine::start(
        "[[share.client]]\nnetwork = \"localhost\"\naccess = \"ro\"\nsquash = \"none\"\nprotocols = [\"nfs\"]\n\
         [[share.client]]\nnetwork = \"*\"\n",
    );
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/data").unwrap();
    assert_eq!((nfs.look(ROOT, &top), nfs.mkdir(ROOT, &top, "made")), (Status::OK, Status::ROFS));
    machine.is_smb_refused("data");
}

#[test]
fn who_is_asked_for_groups_is_told() {
    let machine = Machine::with("nfs-groups = \"server\"\n", "");
    let asked = |machine: &Machine| {
        let said = machine.done(&["domain", "status", "--json"]);
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let lookups = said["server"]["lookups"].as_array().unwrap();
        let of_groups = lookups.iter().find(|asked| asked["subject"] == "groups").unwrap();
        ["found", "absent", "failed", "held"].map(|field| of_groups[field].as_u64().unwrap())
    };
    assert_eq!(asked(&machine), [0; 4]);
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/data").unwrap();
    let stranger = (4_294_000_000, 100);
    assert_eq!((nfs.look(ROOT, &top), nfs.look(stranger, &top)), (Status::OK, Status::OK));
    assert_eq!(asked(&machine), [1, 1, 0, 2], "root, and a number that nobody has");
    let said = machine.done(&["domain", "status"]);
    assert!(said.contains("keytab     none: no tickets are accepted"), "{said}");
    assert!(said.contains("numbers    domain-id-mapping = \"rid\": 1000000 plus"), "{said}");
    assert!(said.contains("\ngroups     name service  "), "{said}");
}

#[test]
fn each_share_says_whose_word_counts_for_groups() {
    const GROUP: u32 = 4242;
    if !rustix::process::geteuid().is_root() {
        println!(
            "not tested: each_share_says_whose_word_counts_for_groups: only the server of root acts as others"
        );
        return;
    }
    let machine = Machine::start("nfs-groups = \"server\"\n");
    let more = path(&machine.directory, "more");
    for directory in ["data", "more/in"] {
        let directory = machine.directory.path().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::set_permissions(&directory, Permissions::from_mode(0o770)).unwrap();
        chown(&directory, None, Some(GROUP)).unwrap();
    }
    machine.done(&["share", "create", "more", &more]);
    // A stranger in the group of the directories: the client says so, and nobody else.
    let stranger = (4_294_000_000, GROUP);
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/data").unwrap();
    assert_eq!(nfs.mkdir(stranger, &top, "made"), Status::ACCES, "the server knows no groups of the user");
    let other = nfs.mount(ROOT, "/more/in").unwrap();
    assert_eq!(nfs.mkdir(stranger, &other, "made"), Status::OK, "the client is believed");
    machine.done(&["share", "set", "more", "--nfs-groups", "server"]);
    assert_eq!(nfs.mkdir(stranger, &other, "again"), Status::ACCES, "at once");
    assert!(machine.done(&["share", "show", "more"]).contains("NFS groups by the server\n"));
    machine.done(&["share", "set", "more", "--nfs-groups", ""]);
    // The same call as before would be taken for its repetition.
    assert_eq!(nfs.mkdir(stranger, &other, "after"), Status::OK, "as the server's setting says");
    let refused = machine.run(&["share", "set", "more", "--nfs-groups", "both"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("expected client or server"), "{said}");
}

#[test]
fn a_share_has_its_protocols() {
    let machine = Machine::start("protocols = [\"smb\"]\n");
    assert_eq!(machine.nfs().mount(ROOT, "/data"), Err(Status::ACCES));
    machine.is_smb_served("data");
    let machine = Machine::start("protocols = [\"nfs\"]\n");
    assert!(machine.nfs().mount(ROOT, "/data").is_ok());
    machine.is_smb_refused("data");
}

#[test]
fn what_must_be_encrypted_is_not_served_over_nfs_and_guests_are_nothing_to_it() {
    let machine = Machine::start("encrypted = true\n");
    assert_eq!(machine.nfs().mount(ROOT, "/data"), Err(Status::ACCES));
    assert!(machine.done(&["share", "show", "data"]).contains("encrypted, smb only"));
    let more = path(&machine.directory, "more");
    std::fs::create_dir(&more).unwrap();
    machine.done(&["share", "create", "more", &more, "--guest"]);
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/more").unwrap();
    machine.done(&["share", "set", "more", "--guest", "off"]);
    assert_eq!(nfs.look(ROOT, &top), Status::OK);
    machine.done(&["share", "set", "more", "--guest", "on", "--encrypted", "on"]);
    assert_eq!(nfs.look(ROOT, &top), Status::ACCES);
    assert!(machine.done(&["share", "list"]).contains("smb only"));
    let machine = Machine::with("smb-encryption = \"required\"\n", "guest = true\n");
    assert_eq!(machine.nfs().mount(ROOT, "/data"), Err(Status::ACCES));
    assert!(machine.log().contains("krb5p alone"), "{}", machine.log());
    assert!(machine.done(&["share", "show", "data"]).contains("smb only"));
}

#[test]
fn a_share_has_its_users_its_comment_and_may_be_hidden() {
    let machine = Machine::start("write = [\"anna\"]\nread = [\"@root\"]\ncomment = \"What we do\"\n");
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(machine.directory.path().join("data"), open).unwrap();
    let (anna, eve) = ((1000, 1000), (1002, 1002));
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/data").unwrap();
    assert_eq!((nfs.mkdir(anna, &top, "annas"), nfs.mkdir(eve, &top, "eves")), (Status::OK, Status::ACCES));
    if let Some(said) = machine.smb("data", "mkdir more; ls") {
        assert!(said.contains("annas") && said.contains("more"), "{said}");
    }
    let hidden = path(&machine.directory, "hidden");
    std::fs::create_dir(&hidden).unwrap();
    std::fs::write(format!("{hidden}/file"), b"").unwrap();
    machine.done(&[
        "share",
        "create",
        "secret",
        &hidden,
        "--hidden",
        "--comment",
        "Not told",
        "--read",
        "anna",
    ]);
    if let Some(listed) = machine.smb_list() {
        assert!(listed.contains("What we do") && !listed.contains("secret"), "{listed}");
    }
    if let Some(said) = machine.smb("secret", "ls; rm file") {
        assert!(said.contains("file") && said.contains("NT_STATUS_ACCESS_DENIED"), "{said}");
    }
    machine.done(&["share", "set", "secret", "--read", "", "--write", "otto,@staff", "--hidden", "off"]);
    machine.is_smb_refused("secret");
    if let Some(listed) = machine.smb_list() {
        assert!(listed.contains("Not told"), "{listed}");
    }
    let shown = machine.done(&["share", "show", "secret"]);
    assert!(shown.contains("write      otto, @staff\n") && !shown.contains("read  "), "{shown}");
}

#[test]
fn roles_are_given_in_the_file_and_by_command() {
    let machine = Machine::start("elevated = [\"@root\"]\nadmin = [\"eva\"]\ndefault-role = \"reader\"\n");
    let shown = machine.done(&["share", "show", "data"]);
    assert!(shown.contains("elevated   @root\nadmin      eva\nothers     reader\n"), "{shown}");
    let open = PermissionsExt::from_mode(0o777);
    let (data, more) = (path(&machine.directory, "data"), path(&machine.directory, "more"));
    std::fs::create_dir(&more).unwrap();
    std::fs::set_permissions(&data, open).unwrap();
    let anna = (1000, 1000);
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/data").unwrap();
    assert_eq!((nfs.look(anna, &top), nfs.mkdir(anna, &top, "annas")), (Status::OK, Status::ROFS));
    if let Some(said) = machine.smb("data", "mkdir annas") {
        assert!(said.contains("NT_STATUS_ACCESS_DENIED"), "{said}");
    }
    let made = ["share", "create", "more", &more, "--write", "otto", "--elevated", "anna,@root"];
    machine.done(&[&made[..], &["--admin", "S-1-5-21-1-2-3-512", "--default-role", "none"]].concat());
    machine.is_smb_served("more");
    let shown = machine.done(&["share", "show", "more"]);
    let lists = "write      otto\nelevated   anna, @root\nadmin      S-1-5-21-1-2-3-512\n";
    assert!(shown.contains(lists), "{shown}");
    machine.done(&["share", "set", "more", "--write", "", "--elevated", "", "--default-role", ""]);
    machine.is_smb_refused("more");
    machine.done(&["share", "set", "more", "--admin", ""]);
    machine.is_smb_served("more");
    for (rule, why) in [
        (["--default-role", "owner"], "is not a role: expected none, reader, contributor, elevated, admin"),
        (["--default-role", "none"], "nobody could use the share"),
        (["--elevated", "AD\\projects"], "wbinfo --name-to-sid"),
    ] {
        let refused = machine.run(&[&["share", "set", "more"][..], &rule].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(7) && said.contains(why), "{rule:?}: {said}");
    }
    let pointless = ["share", "set", "more", "--read", "otto", "--default-role", "contributor"];
    let refused = machine.run(&pointless);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("`read` is without effect"), "{said}");
}

#[test]
fn what_nfs_clients_must_use_changes_by_command_for_those_that_are_there() {
    let machine = Machine::start("");
    let more = path(&machine.directory, "more");
    std::fs::create_dir(&more).unwrap();
    machine.done(&["share", "create", "more", &more, "--nfs-security", "sys,krb5p"]);
    assert!(machine.done(&["share", "show", "more"]).contains("NFS with sys or krb5p\n"));
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/more").unwrap();
    assert_eq!(nfs.look(ROOT, &top), Status::OK);
    machine.done(&["share", "set", "more", "--nfs-security", "krb5i,krb5p"]);
    // There is no keytab here, so nobody gets a ticket, and it is not said that one would help.
    assert_eq!(nfs.look(ROOT, &top), Status::ACCES);
    assert!(machine.done(&["share", "list"]).contains("NFS with krb5i or krb5p, smb only"));
    let shown: serde_json::Value =
        serde_json::from_str(&machine.done(&["share", "show", "more", "--json"])).unwrap();
    assert_eq!(shown["nfs_security"], serde_json::json!(["krb5i", "krb5p"]));
    machine.done(&["share", "set", "more", "--nfs-security", ""]);
    assert_eq!(nfs.look(ROOT, &top), Status::OK);
    machine.done(&["share", "set", "more", "--tls-required", "on"]);
    assert_eq!(nfs.look(ROOT, &top), Status::ACCES);
    assert!(machine.done(&["share", "show", "more"]).contains("encrypted, TLS, smb only"));
    machine.done(&["share", "set", "more", "--tls-required", "off", "--encrypted", "off"]);
    assert_eq!(nfs.look(ROOT, &top), Status::OK);
    machine.done(&["share", "set", "more", "--tls-required", "on"]);
    for (change, why) in [
        (["--nfs-security", "krb6"], "\"krb6\" is no security of NFS"),
        (["--encrypted", "off"], "requires TLS, so it is encrypted"),
    ] {
        let refused = machine.run(&[&["share", "set", "more"][..], &change].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(7) && said.contains(why), "{change:?}: {said}");
    }
    machine.done(&["share", "set", "more", "--tls-required", "off"]);
    let refused = machine.run(&["share", "set", "more", "--nfs-security", "sys"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nfs-security has no krb5p"));
}

#[test]
fn rules_change_by_command_also_for_who_has_a_filehandle_and_stay() {
    let machine = Machine::start("");
    let more = path(&machine.directory, "more");
    std::fs::create_dir(&more).unwrap();
    machine.done(&["share", "create", "more", &more, "--client", "127.0.0.0/8 squash=none"]);
    let mut nfs = machine.nfs();
    let top = nfs.mount(ROOT, "/more").unwrap();
    assert_eq!(nfs.mkdir(ROOT, &top, "made"), Status::OK);
    machine.done(&["share", "set", "more", "--client", "127.0.0.0/8 access=ro squash=none"]);
    assert_eq!(nfs.mkdir(ROOT, &top, "more"), Status::ROFS);
    machine.done(&[
        "share",
        "set",
        "more",
        "--client",
        "192.0.2.7",
        "--client",
        "localhost access=ro protocols=smb",
    ]);
    assert_eq!(nfs.look(ROOT, &top), Status::ACCES);
    machine.is_smb_served("more");
    let shown = machine.done(&["share", "show", "more"]);
    for line in ["client     192.0.2.7 access=rw\n", "client     localhost access=ro protocols=smb\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    machine.done(&["share", "set", "more", "--client", "", "--protocols", "nfs"]);
    assert_eq!(nfs.look(ROOT, &top), Status::OK);
    machine.is_smb_refused("more");
    let shown = machine.done(&["share", "show", "more"]);
    assert!(!shown.contains("client ") && shown.contains("nfs only"), "{shown}");
    let refused = machine.run(&["share", "set", "more", "--client", "10.0.0.0/99"]);
    assert_eq!(refused.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("10.0.0.0/99"));
}

#[test]
fn what_an_nfs4_client_has_open_is_taken_from_it_by_a_command_that_shuts_it_out() {
    let machine = Machine::start("");
    let more = path(&machine.directory, "more");
    std::fs::create_dir(&more).unwrap();
    machine.done(&["share", "create", "more", &more, "--client", "127.0.0.0/8 squash=none"]);
    let address = machine.server.address("nfs");
    let mut gone = Nfs4::start([127, 0, 0, 1].into(), address, "gone");
    let mut stays = Nfs4::start([127, 0, 0, 2].into(), address, "stays");
    let top = gone.top("more").unwrap();
    let denies = gone.open(&top, "denied", ShareDeny::BOTH).unwrap();
    let kept = stays.open(&top, "kept", ShareDeny::NONE).unwrap();
    assert_eq!(stays.open(&top, "denied", ShareDeny::NONE).unwrap_err(), Status4::ShareDenied);

    machine.done(&["share", "set", "more", "--client", "127.0.0.2 squash=none"]);
    stays.open_when_free(&top, "denied");
    assert_eq!(stays.write(&kept), Ok(()));
    assert_eq!(gone.test(&denies), Err(Status4::AdminRevoked));
    assert_eq!(gone.write(&denies), Err(Status4::Access));
    assert_eq!(gone.open(&top, "other", ShareDeny::NONE).unwrap_err(), Status4::Access);
    assert_eq!(gone.top("more").unwrap_err(), Status4::Access);

    machine.done(&["share", "set", "more", "--client", "127.0.0.0/8 squash=none"]);
    assert_eq!(gone.write(&denies), Err(Status4::AdminRevoked));
    let again = gone.open(&top, "denied", ShareDeny::NONE).unwrap();
    assert_eq!(gone.write(&again), Ok(()));

    // Who may only read loses what was opened for writing.
    machine.done(&["share", "set", "more", "--client", "127.0.0.0/8 access=ro squash=none"]);
    gone.until_revoked(&again);
    assert_eq!(gone.write(&again), Err(Status4::RoFs));
}

#[test]
fn rules_that_cannot_be_are_refused_at_the_start_with_their_line() {
    for (share, word) in [
        ("[[share.client]]\nnetwrok = \"*\"\n", "Did you mean `network`?"),
        ("[[share.client]]\nnetwork = \"10.0.0.0/99\"\n", "10.0.0.0/99"),
        ("[[share.client]]\nnetwork = \"*\"\naccess = \"full\"\n", "rw or ro"),
        ("protocols = [\"ftp\"]\n", "ftp"),
        ("protocols = []\n", "protocols"),
        ("default-role = \"owner\"\n", "is not a role"),
        ("default-role = \"none\"\n", "nobody could use the share"),
        ("write = [\"anna\"]\ndefault-role = \"elevated\"\n", "`write` is without effect"),
        ("elevated = [\"@projects@AD LAB\"]\n", "names nobody"),
    ] {
        let directory = TempDir::new().unwrap();
        let config = path(&directory, "anabranch.toml");
        std::fs::write(&config, format!("[[share]]\nname = \"data\"\ndirectory = \"/\"\n{share}")).unwrap();
        let Output { status, stderr, .. } = program(&["serve", "--config", &config]).output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(2) && said.contains(word), "{share}: {said}");
    }
}
