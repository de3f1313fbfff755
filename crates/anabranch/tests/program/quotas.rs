//! `anabranch quota`, and what an SMB client notices of it.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::needs;
use crate::nfs::{NFS, Nfs, Status, opaque, words};
use crate::server::{Server, flags, path, program};

const DEADLINE: Duration = Duration::from_secs(60);
const KIB: u64 = 1024;

/// A machine with a server that declares the share `data`, and has `made`, which was created by command.
struct Machine {
    directory: TempDir,
    /// The directory of `made`.
    place: TempDir,
    server: Server,
}

impl Machine {
    fn serving() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Self::start(&directory);
        // In memory, no blocks are allocated for anything but data.
        let place = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        let machine = Self { directory, place, server };
        let place = machine.place.path().to_str().unwrap().to_owned();
        machine.done(&["share", "create", "made", &place]);
        machine
    }

    fn start(directory: &TempDir) -> Server {
        let flags = flags(directory);
        Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn restarted(mut self) -> Self {
        assert_eq!(self.server.end_with("TERM"), Some(0));
        let server = Self::start(&self.directory);
        Self { server, ..self }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        program(arguments).args(["--state", &path(&self.directory, "state")]).output().unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.done(&arguments)).unwrap()
    }

    fn refused(&self, arguments: &[&str], status: i32, words: &str) {
        let Output { status: ended, stderr, .. } = self.run(arguments);
        let said = String::from_utf8(stderr).unwrap();
        assert!(ended.code() == Some(status) && said.contains(words), "{arguments:?}: {ended}: {said}");
    }

    /// The quotas of `made`, once all files were counted.
    fn counted(&self) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let quotas = self.json(&["quota", "list", "made"]);
            if quotas["counted"].is_u64() && quotas["counting"] == false {
                return quotas;
            }
            assert!(Instant::now() < deadline, "they were not counted: {quotas:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What smbclient says; None where there is none.
    fn smb(&self, commands: &str) -> Option<String> {
        let (_, port) = self.server.address("smb").rsplit_once(':').unwrap();
        let ran = Command::new("smbclient")
            .args(["//127.0.0.1/made", "-p", port, "-U", "anna%hush-hush", "-c", commands])
            .output();
        let ran = needs::installed("smbclient", ran)?;
        Some(String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    }
}

#[test]
fn a_quota_is_set_held_kept_over_a_restart_and_removed() {
    let machine = Machine::serving();
    let file = path(&machine.directory, "100KiB");
    std::fs::write(&file, vec![7; 100 * 1024]).unwrap();
    assert_eq!(machine.done(&["quota", "set", "made", "/", "--hard", "64KiB"]), "The quota of / was set.\n");
    machine.done(&["quota", "set", "made", "Anna", "--soft", "1GiB", "--hard", "2GiB", "--grace", "14d"]);
    machine.done(&["quota", "set", "made", "@*", "--hard", "1TiB"]);
    let quotas = machine.counted();
    let root = json!({
        "subject": "/", "id": null, "soft": null, "hard": 64 * KIB, "grace": 604_800, "used": 0, "over_since": null
    });
    assert_eq!(quotas["quotas"][0], root);
    assert_eq!(
        (&quotas["quotas"][1]["subject"], &quotas["quotas"][1]["grace"]),
        (&json!("anna"), &json!(1_209_600))
    );
    assert!(quotas["quotas"][1]["id"].is_u64(), "{quotas:#}");
    if let Some(said) = machine.smb(&format!("put {file} f")) {
        assert!(said.contains("NT_STATUS_DISK_FULL"), "{said}");
    }

    machine.done(&["quota", "set", "made", "/", "--hard", "1MiB"]);
    machine.counted();
    if let Some(said) = machine.smb(&format!("put {file} g")) {
        assert!(!said.contains("NT_STATUS"), "{said}");
        let used = machine.json(&["quota", "show", "made", "/"])["used"].as_u64().unwrap();
        assert!((100 * KIB..=200 * KIB).contains(&used), "{used}");
        assert!(machine.done(&["quota", "list", "made"]).contains("All files were last counted at "));
    }

    // What a local program has changed is found when it is asked for.
    std::fs::write(machine.place.path().join("local"), vec![7; 300 * 1024]).unwrap();
    let said = machine.done(&["quota", "check", "made"]);
    assert_eq!(said, "All files of the share made are being counted.\n");
    let deadline = Instant::now() + DEADLINE;
    while machine.json(&["quota", "show", "made", "/"])["used"].as_u64().unwrap() < 300 * KIB {
        assert!(Instant::now() < deadline, "it was not counted");
        std::thread::sleep(Duration::from_millis(20));
    }
    machine.refused(&["quota", "check", "data"], 7, "has no quotas");

    let machine = machine.restarted();
    let quotas = machine.counted();
    assert_eq!(quotas["quotas"].as_array().unwrap().len(), 3, "{quotas:#}");
    machine.done(&["quota", "remove", "made", "/"]);
    machine.done(&["quota", "remove", "made", "ANNA"]);
    machine.refused(&["quota", "remove", "made", "anna"], 7, "has no quota of anna");
    machine.done(&["quota", "remove", "made", "@*"]);
    assert!(machine.done(&["quota", "list", "made"]).contains("The share has no quotas."));
}

/// Writes a block to a file of an NFS client (RFC 1813 3.3.7, UNSTABLE).
fn write_block(client: &mut Nfs, file: &[u8], block: u32) -> Status {
    let arguments = [opaque(file), words(&[0, block * 4096, 4096, 0]), opaque(&[7; 4096])].concat();
    let results = client.call(NFS, 7, (0, 0), &arguments);
    Status(u32::from_be_bytes(results[..4].try_into().unwrap()))
}

/// What the files of `made` occupy.
fn occupied(machine: &Machine) -> u64 {
    let entries = std::fs::read_dir(machine.place.path()).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|file| std::os::linux::fs::MetadataExt::st_blocks(&file.metadata().unwrap()) * 512).sum()
}

/// Four NFS clients write to files of their own and four SMB clients make files, until nothing fits any more.
#[test]
fn the_last_block_is_used_by_clients_of_both_protocols_and_no_other() {
    const BLOCKS: u64 = 200;
    let machine = Machine::serving();
    let block = path(&machine.directory, "4KiB");
    std::fs::write(&block, vec![7; 4096]).unwrap();
    machine.done(&["quota", "set", "made", "/", "--hard", &format!("{}KiB", 4 * BLOCKS)]);
    machine.counted();
    let by_nfs = |number: u32| {
        let name = format!("nfs-{number}");
        std::fs::write(machine.place.path().join(&name), "").unwrap();
        let mut client = Nfs::connect(machine.server.address("nfs"));
        let root = client.mount((0, 0), "/made").unwrap();
        let file = client.lookup((0, 0), &root, &name).unwrap();
        for block in 0..100 {
            let status = write_block(&mut client, &file, block);
            assert!([Status::OK, Status(69)].contains(&status), "{status:?}"); // 69: NFS3ERR_DQUOT
        }
    };
    let by_smb = |number: u32| {
        let puts: Vec<String> = (0..100).map(|file| format!("put {block} smb-{number}-{file}")).collect();
        machine.smb(&puts.join(";"))
    };
    std::thread::scope(|scope| {
        let (by_nfs, by_smb) = (&by_nfs, &by_smb);
        for number in 0..4 {
            scope.spawn(move || by_nfs(number));
            scope.spawn(move || by_smb(number));
        }
    });
    assert_eq!(occupied(&machine), BLOCKS * 4096);
    assert_eq!(machine.json(&["quota", "show", "made", "/"])["used"], BLOCKS * 4096);
    if let Some(said) = machine.smb(&format!("put {block} another")) {
        assert!(said.contains("NT_STATUS_DISK_FULL"), "{said}");
    }
}

#[test]
fn what_is_wrong_is_told() {
    let machine = Machine::serving();
    for (arguments, words) in [
        (&["anna"][..], "a quota needs a soft or a hard limit"),
        (&["anna", "--hard", "10GB"], "is no size"),
        (&["anna", "--hard", "1GiB", "--soft", "2GiB"], "above the hard limit"),
        (&["anna", "--hard", "1GiB", "--grace", "1w"], "is no time"),
        (&["/a/../b", "--hard", "1GiB"], "is no path"),
    ] {
        let arguments: Vec<&str> = ["quota", "set", "made"].iter().chain(arguments).copied().collect();
        machine.refused(&arguments, 2, words);
    }
    machine.refused(&["quota", "set", "data", "anna", "--hard", "1GiB"], 7, "is declared in");
    machine.refused(&["quota", "set", "none", "anna", "--hard", "1GiB"], 7, "there is no share none");
    machine.refused(&["quota", "show", "made", "anna"], 7, "has no quota of anna");
}
