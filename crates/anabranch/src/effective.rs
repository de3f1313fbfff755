//! The effective configuration: what is given, completed by the defaults, with the source of each value.

mod text;

use control::configuration::{Configuration, Section as ShownSection, Setting, Source};
use gateway::settings::{Hooks, PolicySettings, PoolSettings, ShareSettings};
use serde_json::{Map, Value, json};
use share::Terms;
use state::rules;

use crate::place::{Place, Places, Section};
use crate::settings::{
    Given, Key, POLICY_KEYS, POOL_KEYS, SERVER_KEYS, SHARE_KEYS, USER_KEYS, UserGiven, write_overcommit,
};
use crate::state_directory;

pub(crate) use self::text::render;

/// The settings that are listed as sections of their own, and the one whose files are listed.
const ELSEWHERE: [&str; 5] = ["share", "snapshot-policy", "pool", "user", "include"];

/// What is given, completed.
pub(crate) fn of(given: &Given) -> Configuration {
    let mut users = given.user.clone();
    for named in &given.password_file {
        if !users.iter().any(|user| auth::same_name(&user.name, &named.name)) {
            users.push(UserGiven::named(&named.name));
        }
    }
    Configuration {
        files: given.from.files.iter().map(|file| file.display().to_string()).collect(),
        settings: server(given),
        shares: given.share.iter().map(|share| of_share(given, &share.0)).collect(),
        users: users.iter().map(|user| of_user(given, user)).collect(),
        pools: given.pool.iter().map(|pool| of_pool(given, &pool.0)).collect(),
        snapshot_policies: given.snapshot_policy.iter().map(|policy| of_policy(given, &policy.0)).collect(),
        reload: None,
    }
}

fn setting(key: &str, value: Value, source: Source) -> Setting {
    Setting { key: key.to_owned(), value, source, file: None, line: None, variable: None }
}

/// A value that is given: in a file if it has a place there, otherwise on the command line.
fn given_at(key: &str, value: Value, place: Option<&Place>) -> Setting {
    match place {
        None => setting(key, value, Source::CommandLine),
        Some(place) => Setting {
            file: Some(place.file.display().to_string()),
            line: u64::try_from(place.line).ok(),
            ..setting(key, value, Source::File)
        },
    }
}

/// The default of a key. Null: it has none.
fn default(key: &Key) -> Value {
    let parsed =
        key.default.and_then(|text| toml::from_str::<Map<String, Value>>(&format!("value = {text}")).ok());
    parsed.and_then(|mut table| table.remove("value")).unwrap_or(Value::Null)
}

fn server(given: &Given) -> Vec<Setting> {
    let values = given.values();
    let is_shown = |key: &&Key| {
        let is_for_people = !key.name.starts_with("bench-");
        !ELSEWHERE.contains(&key.name) && (is_for_people || values.contains_key(key.name))
    };
    let keys: Vec<&Key> = SERVER_KEYS.iter().filter(is_shown).collect();
    let mut values = values;
    let of_key = |key: &Key| match values.remove(key.name) {
        Some(value) => given_at(key.name, value, given.from.places.of(&Section::Server, key.name)),
        None if key.name == "state" => state(),
        None => setting(key.name, default(key), Source::Default),
    };
    keys.into_iter().map(of_key).collect()
}

/// The state directory, if no flag and no file names it.
fn state() -> Setting {
    match state_directory::given(None) {
        None => setting("state", json!(state_directory::DEFAULT), Source::Default),
        Some(directory) => Setting {
            variable: Some(state_directory::VARIABLE.to_owned()),
            ..setting("state", json!(directory.to_string_lossy()), Source::Environment)
        },
    }
}

fn of_share(given: &Given, share: &ShareSettings) -> ShownSection {
    let places = &given.from.places;
    let section = Section::share(&share.name);
    let is_named =
        given.continuous_availability.iter().any(|name| name.to_lowercase() == share.name.to_lowercase());
    let mut values = share_values(share);
    let of_key = |key: &Key| {
        let value = values.remove(key.name).unwrap_or(Value::Null);
        let place = places.of(&section, key.name);
        if key.name == "continuous-availability" && is_named && place.is_none() {
            return given_at(key.name, json!(true), places.of(&Section::Server, key.name));
        }
        let is_of_text = ["name", "directory"].contains(&key.name);
        match place {
            Some(place) => given_at(key.name, value, Some(place)),
            None if is_of_text => given_at(key.name, value, places.of(&section, Places::WHOLE)),
            None => setting(key.name, value, Source::Default),
        }
    };
    ShownSection { name: share.name.clone(), settings: SHARE_KEYS.iter().map(of_key).collect() }
}

/// The values of a share, by the keys of `[[share]]`.
fn share_values(share: &ShareSettings) -> Map<String, Value> {
    let ShareSettings {
        name,
        directory,
        terms,
        rules,
        comment,
        plan,
        tier,
        metadata_cache,
        reserved_names,
        snapshot_policy,
        recycle_bin,
        ransomware_alarm,
        quotas,
    } = share;
    let written = rules::write(rules);
    let has = |term| terms.contains(term);
    let values = json!({
        "name": name,
        "directory": gateway::settings::written_directory(directory, *terms).to_string_lossy(),
        "read-only": has(Terms::READ_ONLY),
        "guest": has(Terms::GUESTS),
        "continuous-availability": has(Terms::CONTINUOUSLY_AVAILABLE),
        "access-based-enumeration": has(Terms::ACCESS_BASED_ENUMERATION),
        "metadata-cache": metadata_cache,
        "reserved-names": reserved_names,
        "snapshot-policy": snapshot_policy,
        "recycle-bin": rules::write_recycle_bin(recycle_bin.as_ref()),
        "ransomware-alarm": rules::write_ransomware_alarm(*ransomware_alarm),
        "quotas": quotas.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "encrypted": has(Terms::ENCRYPTED),
        "tls-required": has(Terms::TLS),
        "plan": plan.to_string(),
        "tier": tier.map(|tier| tier.to_string()).unwrap_or_default(),
        "protocols": written.protocols,
        "client": written.clients,
        "devices": has(Terms::DEVICES),
        "set-id": has(Terms::SET_ID),
        "secure-port": has(Terms::SECURE_PORT),
        "nfs-security": rules::write_nfs_security(*terms),
        "nfs-groups": rules::write_nfs_groups(*terms),
        "nfs-snapshots": rules::write_nfs_snapshots(*terms),
        "read": written.read,
        "write": written.write,
        "elevated": written.elevated,
        "admin": written.admin,
        "default-role": written.default_role,
        "comment": comment,
        "hidden": has(Terms::HIDDEN),
        "access-log": !has(Terms::UNLOGGED),
    });
    let Value::Object(values) = values else { return Map::new() };
    values
}

fn of_pool(given: &Given, PoolSettings { name, directory, overcommits }: &PoolSettings) -> ShownSection {
    let section = Section::pool(name);
    let of_key = |key: &Key| {
        let value = match key.name {
            "name" => json!(name),
            "directory" => json!(directory.to_string_lossy()),
            _ => json!(write_overcommit(*overcommits)),
        };
        match given.from.places.of(&section, key.name) {
            Some(place) => given_at(key.name, value, Some(place)),
            None => setting(key.name, value, Source::Default),
        }
    };
    ShownSection { name: name.clone(), settings: POOL_KEYS.iter().map(of_key).collect() }
}

fn of_policy(given: &Given, settings: &PolicySettings) -> ShownSection {
    let PolicySettings { policy, hooks: Hooks { before, after, time } } = settings;
    let section = Section::policy(policy.name());
    let of_key = |key: &Key| {
        let value = match key.name {
            "name" => json!(policy.name()),
            "before" => json!(before),
            "after" => json!(after),
            "hook-seconds" => json!(time.as_secs()),
            period => json!(
                policy.rules().iter().find(|rule| rule.period.name() == period).map(ToString::to_string)
            ),
        };
        match given.from.places.of(&section, key.name) {
            Some(place) => given_at(key.name, value, Some(place)),
            None => setting(key.name, value, Source::Default),
        }
    };
    ShownSection { name: policy.name().to_owned(), settings: POLICY_KEYS.iter().map(of_key).collect() }
}

fn of_user(given: &Given, user: &UserGiven) -> ShownSection {
    let places = &given.from.places;
    let section = Section::user(&user.name);
    let system = gateway::system_user(&user.name).filter(|(uid, ..)| *uid != 0);
    let of_id = |key: &str, value: Value, of_system: Option<Value>| match (value, of_system) {
        (Value::Null, Some(value)) => setting(key, value, Source::System),
        (Value::Null, None) => setting(key, Value::Null, Source::Default),
        (value, _) => given_at(key, value, places.nearest(&section, key)),
    };
    let password_file = given.password_file.iter().any(|named| auth::same_name(&named.name, &user.name));
    let nt_hash = match user.nt_hash {
        Some(_) => given_at("nt-hash", Value::Null, places.nearest(&section, "nt-hash")),
        None => setting("nt-hash", Value::Null, Source::Default),
    };
    let password = if user.password.is_some() {
        given_at("password", Value::Null, places.nearest(&section, "password"))
    } else if user.nt_hash.is_some() {
        setting("password", Value::Null, Source::Default)
    } else if password_file {
        given_at("password", Value::Null, places.of(&Section::Server, "password-file"))
    } else {
        setting("password", Value::Null, Source::State)
    };
    let groups = system.as_ref().filter(|_| user.uid.is_none()).map(|(_, _, groups)| json!(groups));
    let of_key = |key: &Key| match key.name {
        "name" => {
            let place = places.nearest(&section, "name");
            let in_password_file = || places.of(&Section::Server, "password-file");
            given_at("name", json!(user.name), place.or_else(in_password_file))
        }
        "uid" => of_id("uid", json!(user.uid), system.as_ref().map(|(uid, ..)| json!(uid))),
        "gid" => of_id("gid", json!(user.gid), system.as_ref().map(|(_, gid, _)| json!(gid))),
        "groups" => of_id("groups", json!(user.groups), groups.clone()),
        "nt-hash" => nt_hash.clone(),
        _ => password.clone(),
    };
    ShownSection { name: user.name.clone(), settings: USER_KEYS.iter().map(of_key).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'s>(settings: &'s [Setting], key: &str) -> &'s Setting {
        settings.iter().find(|setting| setting.key == key).unwrap()
    }

    #[test]
    fn flags_and_defaults_are_told_apart() {
        let given = Given {
            share: vec!["data=/srv/data".parse().unwrap()],
            user: vec!["no-such-user=1000:hush-hush".parse().unwrap()],
            max_channels: Some(8),
            state: Some("/s".into()),
            continuous_availability: vec!["DATA".to_owned()],
            ..Given::default()
        };
        let shown = of(&given);
        let source = |key| (find(&shown.settings, key).value.clone(), find(&shown.settings, key).source);
        assert_eq!(source("max-channels"), (json!(8), Source::CommandLine));
        assert_eq!(source("smb"), (json!(["0.0.0.0:445"]), Source::Default));
        assert_eq!(source("state"), (json!("/s"), Source::CommandLine));
        assert_eq!(source("connections-per-address"), (Value::Null, Source::Default));
        let share = &shown.shares[0];
        assert_eq!(find(&share.settings, "directory").source, Source::CommandLine);
        assert_eq!(find(&share.settings, "plan").value, json!("unlimited"));
        assert_eq!(find(&share.settings, "continuous-availability").source, Source::CommandLine);
        let user = &shown.users[0];
        assert_eq!(find(&user.settings, "uid").value, json!(1000));
        assert_eq!(find(&user.settings, "password").source, Source::CommandLine);
        assert!(!serde_json::to_string(&shown).unwrap().contains("hush"));
    }

    /// The defaults that are shown are those that apply.
    #[test]
    fn defaults_are_those_of_the_program() {
        let without = ["share", "user", "include", "state"];
        let lines = SERVER_KEYS.iter().filter(|key| !without.contains(&key.name)).filter_map(|key| {
            let default = key.default.filter(|default| *default != "[]")?;
            Some(format!("{} = {default}", key.name))
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let given: Given = toml::from_str(&text).unwrap();
        let settings = |given| format!("{:?}", crate::settings::Settings::new(given).unwrap());
        assert_eq!(settings(given), settings(Given::default()));
        let share: crate::settings::ShareGiven = "data=/srv/data".parse().unwrap();
        for key in SHARE_KEYS.iter().filter(|key| key.default.is_some()) {
            assert_eq!(share_values(&share.0)[key.name], default(key), "{}", key.name);
        }
    }
}
