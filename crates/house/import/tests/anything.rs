//! No text makes the import panic, and what it makes is always TOML.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use anabranch_import::{File, Imported, Samba};
use proptest::prelude::*;

mod machine;

use machine::{Here, TestMachine};

fn check(imported: &Imported) {
    let table: toml::Table = imported.text.parse().unwrap();
    let written = table.get("share").and_then(|shares| shares.as_array()).map_or(0, Vec::len);
    assert_eq!(written, imported.shares.iter().filter(|share| share.closed.is_empty()).count());
    let users = table.get("user").and_then(|users| users.as_array()).map_or(0, Vec::len);
    assert_eq!(users, imported.users.iter().filter(|user| user.closed.is_none()).count());
}

fn samba(text: &str, users: &str) {
    let given = Samba { file: "f", text, users: Some(("u", users)), reader: &Here, machine: &TestMachine };
    if let Ok(imported) = anabranch_import::samba(&given) {
        check(&imported);
    }
}

/// Words of which configurations are made, and some that belong nowhere.
fn words(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let word = prop_oneof![8 => prop::sample::select(words).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

const SAMBA: &[&str] = &[
    "[global]\n",
    "[homes]\n",
    "[data]\n",
    "[ d \u{fc} ]\n",
    "[",
    "]",
    "\n",
    "\\\n",
    " ",
    "=",
    ";",
    "#",
    "\"",
    "%S",
    "%",
    "%$(",
    "/",
    "path = /srv/",
    "read only = ",
    "yes\n",
    "no\n",
    "valid users = ",
    "invalid users = ",
    "write list = ",
    "read list = ",
    "hosts allow = ",
    "hosts deny = ",
    "EXCEPT ",
    "ALL ",
    "10. ",
    "10.0.0.0/8 ",
    "@staff ",
    "+&x ",
    "anna ",
    "root ",
    "host ",
    "copy = data\n",
    "include = office.conf\n",
    "veto files = /a/*b/\n",
    "vfs objects = ",
    "acl_xattr\n",
    "comment = ",
    "interfaces = ",
    "bind interfaces only = yes\n",
    "smb ports = ",
    "139 ",
    "445 ",
    "create mask = 0700\n",
    "guest ok = yes\n",
    "server smb encrypt = required\n",
    "root directory = /x\n",
    "\u{0}",
    "\r\n",
];

const EXPORTS: &[&str] = &[
    "/srv ",
    "/srv/a ",
    "\n",
    "\\\n",
    "\\040",
    "\\400",
    "\"",
    "#",
    "*",
    "(rw)",
    "(",
    ")",
    "rw,",
    "-ro ",
    "sec=krb5:",
    "sys ",
    "@net ",
    "10.0.0.0/8",
    "/255.0.255.0",
    "host",
    "(sec=sys,rw,mp)",
    "(fsid=0)",
    " ",
    "2001:db8::/32(rw) ",
    "[::1]",
    "gss/krb5(rw) ",
    "\u{0}",
];

const USERS: &[&str] = &[
    "anna:",
    "1000:",
    "4294967295:",
    "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX:",
    "A4F49C406510BDCAB6824EE7C30FD852:",
    "[U ]:",
    "[D",
    "]:",
    "LCT-0:\n",
    "\n",
    "#",
    "zo\u{e9}:",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_imported_or_refused(text in "\\PC{0,200}", users in "\\PC{0,80}") {
        samba(&text, &users);
        if let Ok(imported) = anabranch_import::exports(&[File { name: "e", text: &text }]) {
            check(&imported);
        }
    }

    #[test]
    fn any_configuration_of_samba_is_imported_or_refused(text in words(SAMBA), users in words(USERS)) {
        samba(&text, &users);
    }

    #[test]
    fn any_table_of_exports_is_imported_or_refused(text in words(EXPORTS)) {
        if let Ok(imported) = anabranch_import::exports(&[File { name: "e", text: &text }]) {
            check(&imported);
        }
    }
}
