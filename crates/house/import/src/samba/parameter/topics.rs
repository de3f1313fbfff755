//! What becomes of the parameters of smb.conf(5) (Samba 4.17 and later) that are not carried over.

use super::Scope;
use crate::note::Grade;

/// Parameters that are left out for one reason.
struct Topic {
    grade: Grade,
    why: &'static str,
    /// Those of `[global]` only, with `, ` between them.
    server: &'static str,
    /// Those of any section.
    share: &'static str,
}

impl Topic {
    fn server(&self) -> impl Iterator<Item = &'static str> {
        self.server.split(", ")
    }

    fn share(&self) -> impl Iterator<Item = &'static str> {
        self.share.split(", ")
    }
}

/// Why Samba's own words for `security` and `server role` matter.
const NO_DOMAIN: &str = "there is no domain: its users and groups cannot log on, and shares that name them admit nobody by them; give \
                         the users accounts (--users, `anabranch user add`)";
const STANDALONE: &str = "every server here is a standalone server";
/// Of `idmap config DOMAIN : OPTION`.
const NO_MAPPING: &str = "there is no domain, and nothing to map";
/// Of a parameter that Samba does not know.
const UNKNOWN: &str = "Samba 4.17 does not know this parameter, and ignores it";
/// Of a parameter of a module (`module:name`).
const OF_MODULE: &str = "there are no modules";

/// The names of the parameters that are left out.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let of_topics = TOPICS.iter().flat_map(|topic| topic.server().chain(topic.share()));
    of_topics.chain(["security", "server role"])
}

/// Where a parameter may stand; None: it is unknown.
pub(super) fn scope(name: &str) -> Option<Scope> {
    if matches!(name, "security" | "server role")
        || TOPICS.iter().any(|topic| topic.server().any(|known| known == name))
    {
        return Some(Scope::Server);
    }
    TOPICS.iter().any(|topic| topic.share().any(|known| known == name)).then_some(Scope::Share)
}

/// Why a parameter is left out, and what that means.
pub(super) fn fate(name: &str, value: &str) -> (Grade, &'static str) {
    if matches!(name, "security" | "server role") {
        let is_alone = matches!(
            value.to_ascii_lowercase().as_str(),
            "auto" | "user" | "standalone" | "standalone server"
        );
        return if is_alone { (Grade::NotNeeded, STANDALONE) } else { (Grade::ChangesAccess, NO_DOMAIN) };
    }
    let topic = TOPICS
        .iter()
        .find(|topic| topic.server().any(|known| known == name) || topic.share().any(|known| known == name));
    match topic {
        Some(topic) => (topic.grade, topic.why),
        None if name.starts_with("idmapconfig") => (Grade::NoCounterpart, NO_MAPPING),
        None if name.contains(':') => (Grade::NoCounterpart, OF_MODULE),
        None => (Grade::NoCounterpart, UNKNOWN),
    }
}

const TOPICS: &[Topic] = &[
    Topic {
        grade: Grade::NoCounterpart,
        why: "there is no printing",
        server: "addport command, addprinter command, cups connection timeout, cups encrypt, cups server, \
                 deleteprinter command, disable spoolss, enumports command, iprint server, load printers, lpq cache time, \
                 os2 driver map, printcap cache time, printcap name, show add printer wizard",
        share: "cups options, default devmode, force printername, lppause command, lpq command, lpresume command, \
                 lprm command, max print jobs, max reported print jobs, min print space, print command, \
                 print notify backchannel, printer name, printing, printjob username, queuepause command, \
                 queueresume command, use client driver",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "there is no NetBIOS: clients find the server by the name or address that they are given",
        server: "browse list, cldap port, dgram port, disable netbios, dns proxy, domain master, enhanced browsing, \
                 lm announce, lm interval, local master, max ttl, max wins ttl, message command, min wins ttl, \
                 name resolve order, nbt client socket address, nbt port, netbios aliases, netbios name, netbios scope, \
                 nmbd bind explicit broadcast, os level, preferred master, remote announce, remote browse sync, \
                 server string, time server, wins hook, wins proxy, wins server, wins support, workgroup",
        share: "",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "the server does not announce itself",
        server: "mdns name, multicast dns register",
        share: "",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "there is no domain, and no directory service but that of the system",
        server: "algorithmic rid base, allow trusted domains, apply group policies, client ldap sasl wrapping, \
                 create krb5 conf, dedicated keytab file, gpo update command, idmap backend, idmap cache time, idmap gid, \
                 idmap negative cache time, idmap uid, include system krb5 conf, kerberos encryption types, kerberos method, \
                 ldap admin dn, ldap connection timeout, ldap debug level, ldap debug threshold, ldap delete dn, ldap deref, \
                 ldap follow referral, ldap group suffix, ldap idmap suffix, ldap machine suffix, \
                 ldap max anonymous request size, ldap max authenticated request size, ldap max search request size, \
                 ldap page size, ldap passwd sync, ldap replication sleep, ldap server require strong auth, ldap ssl, \
                 ldap suffix, ldap timeout, ldap user suffix, machine password timeout, min domain uid, password server, \
                 realm, reject md5 servers, require strong key, sync machine password to keytab, template homedir, \
                 template shell, winbind cache time, winbind enum groups, winbind enum users, winbind expand groups, \
                 winbind max clients, winbind max domain connections, winbind nested groups, winbind normalize names, \
                 winbind nss info, winbind offline logon, winbind reconnect delay, winbind refresh tickets, \
                 winbind request timeout, winbind rpc only, winbind scan trusted domains, winbind sealed pipes, \
                 winbind separator, winbind use default domain, winbind use krb5 enterprise principals, \
                 winbindd socket directory",
        share: "",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "the server is no domain controller",
        server: "add machine script, additional dns hostnames, allow dns updates, allow nt4 crypto, auth event notification, \
                 binddns dir, dcerpc endpoint servers, dns forwarder, dns port, dns update command, dns zone scavenging, \
                 dns zone transfer clients allow, dns zone transfer clients deny, domain logons, dsdb event notification, \
                 dsdb group change notification, dsdb password event notification, init logon delay, \
                 init logon delayed hosts, kdc default domain supported enctypes, kdc enable fast, \
                 kdc force enable rc4 weak session keys, kdc supported enctypes, kpasswd port, krb5 port, logon drive, \
                 logon home, logon path, logon script, lsa over netlogon, mit kdc command, neutralize nt4 emulation, \
                 nsupdate command, ntp signd socket directory, old password allowed period, password hash gpg key ids, \
                 password hash userpassword schemes, reject md5 clients, samba kcc command, server schannel, \
                 server schannel require seal, server services, spn update command, tls cafile, tls certfile, tls crlfile, \
                 tls dh params file, tls enabled, tls keyfile, tls priority, tls verify peer",
        share: "",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "users and passwords are changed by `anabranch user`, and not by clients",
        server: "add group script, add user script, add user to group script, check password script, delete group script, \
                 delete user from group script, delete user script, pam password change, passwd chat, passwd chat debug, \
                 passwd chat timeout, passwd program, rename user script, set primary group script, unix password sync, \
                 username map cache time",
        share: "",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "--users imports the accounts (`pdbedit -L -w` prints them)",
        server: "passdb backend, passdb expand explicit, private dir, smb passwd file",
        share: "",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "users log on by the names of their accounts: no name stands for another one",
        server: "username map, username map script",
        share: "",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "accounts that PAM refuses there may log on here: leave them out",
        server: "obey pam restrictions",
        share: "",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "NTLMv2 is the only way to log on here",
        server: "ntlm auth",
        share: "",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "every account needs a password",
        server: "null passwords",
        share: "",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "only NTLMv2 is accepted",
        server: "enable asu support, encrypt passwords, lanman auth, nt hash store, raw ntlmv2 auth, restrict anonymous, \
                 unicode, username level",
        share: "",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "guests are nobody (uid 65534)",
        server: "guest account",
        share: "",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "an unknown user is a guest on shares with `guest = true`, and refused elsewhere",
        server: "map to guest",
        share: "",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "the log goes to standard error, as `log` and `log-format` say",
        server: "debug class, debug encryption, debug hires timestamp, debug pid, debug prefix timestamp, \
                 debug syslog format, debug uid, log file, log level, log nt token command, log writeable files on exit, \
                 logging, max log size, panic action, perfcount module, smbd profiling level, syslog, syslog only, \
                 timestamp logs, utmp, utmp directory, winbind debug traceid, wtmp directory",
        share: "",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "it concerns files and processes of Samba only",
        server: "cache directory, ctdb locktime warn threshold, ctdb timeout, ctdbd socket, enable core files, \
                 lock directory, ncalrpc dir, pid directory, prefork backoff increment, prefork children, \
                 prefork maximum backoff, preload modules, state directory, use mmap",
        share: "smbd force process locks",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "there is no cluster",
        server: "allow unsafe cluster upgrade, cluster addresses, clustering",
        share: "fstype",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "shares in Samba's registry and shares of users are not read",
        server: "auto services, config backend, default service, registry shares, usershare allow guests, \
                 usershare max shares, usershare owner only, usershare path, usershare prefix allow list, \
                 usershare prefix deny list, usershare template share",
        share: "",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "the server chooses this by itself",
        server: "aio max threads, async dns timeout, async smb echo handler, change notify, deadtime, \
                 defer sharing violations, getwd cache, hostname lookups, keepalive, kernel change notify, large readwrite, \
                 lock spin time, max mux, max open files, max smbd processes, max stat cache size, max xmit, \
                 min receivefile size, name cache timeout, nt pipe support, nt status support, oplock break wait time, \
                 read raw, reset on zero vc, server max protocol, server smb3 encryption algorithms, \
                 server smb3 signing algorithms, smb1 unix extensions, smb2 disable lock sequence checking, \
                 smb2 disable oplock break retry, smb2 leases, smb2 max credits, smb2 max read, smb2 max trans, \
                 smb2 max write, socket options, stat cache, write raw",
        share: "aio read size, aio write behind, aio write size, allocation roundup size, block size, blocking locks, \
                 check parent directory delete on close, directory name cache size, durable handles, ea support, \
                 fake oplocks, follow symlinks, honor change notify privilege, kernel oplocks, kernel share modes, \
                 level2 oplocks, locking, nt acl support, oplocks, posix locking, smbd async dosmode, \
                 smbd getinfo ask sharemode, smbd max async dosmode, smbd max xattr size, smbd search ask sharemode, \
                 store dos attributes, strict allocate, strict locking, strict rename, strict sync, sync always, \
                 use sendfile, veto oplock files",
    },
    Topic {
        grade: Grade::NotNeeded,
        why: "it concerns Samba as a client",
        server: "client ntlmv2 auth, client ipc max protocol, client ipc min protocol, client ipc signing, \
                 client lanman auth, client max protocol, client min protocol, client plaintext auth, client protection, \
                 client schannel, client signing, client smb encrypt, client smb3 encryption algorithms, \
                 client smb3 signing algorithms, client use kerberos, client use spnego, client use spnego principal",
        share: "",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "RPC services other than those that shares need are not offered",
        server: "allow dcerpc auth level connect, enable privileges, enable spoolss, eventlog list, host msdfs, \
                 rpc big endian, rpc server dynamic port range, rpc server port, rpc start on demand helpers, svcctl list",
        share: "dmapi support",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "the server starts no programs",
        server: "abort shutdown script, add share command, change share command, delete share command, get quota command, \
                 homedir map, nis homedir, set quota command, shutdown script",
        share: "dfree cache time, dfree command, magic output, magic script, postexec, preexec, root postexec, \
                 root preexec",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "names and attributes of files are handled as docs/SEMANTICS.md says",
        server: "dos charset, mangle prefix, mangling method, unix charset",
        share: "acl flag inherited canonicalization, case sensitive, default case, delete readonly, delete veto files, \
                 dont descend, dos filetime resolution, dos filetimes, fake directory create times, hide dot files, \
                 hide files, hide new files timeout, hide special files, hide unwriteable files, mangled names, \
                 mangling char, map archive, map hidden, map readonly, map system, preserve case, short preserve case",
    },
    Topic {
        grade: Grade::NoCounterpart,
        why: "nothing here does the same",
        server: "afs token lifetime, afs username map, max disk size",
        share: "administrative share, afs share, csc policy, max connections, msdfs root, msdfs shuffle referrals, \
                 ntvfs handler, spotlight, spotlight backend, volume, volume serial number",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "links that lead out of the share are not followed",
        server: "allow insecure wide links",
        share: "wide links",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "every user acts as itself here: the permissions of the files must admit the users",
        server: "",
        share: "admin users, force group, force unknown acl user, force user",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "new files have mode 0644 and new directories 0755, unless the access control list of their directory says more",
        server: "",
        share: "directory security mask, force create mode, force directory mode, force directory security mode, \
                 force security mode, inherit acls, inherit owner, inherit permissions, security mask",
    },
    Topic {
        grade: Grade::ChangesAccess,
        why: "permissions and access control lists are those of docs/SEMANTICS.md",
        server: "",
        share: "acl allow execute always, acl check permissions, acl group control, acl map full control, dos filemode, \
                 map acl inherit, profile acls",
    },
];
