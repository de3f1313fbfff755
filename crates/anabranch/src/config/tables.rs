//! The tables `[[share]]`, `[[share.client]]`, `[[user]]`, `[[snapshot-policy]]` and `[[pool]]`.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, nearest};
use crate::place::{Places, Section};
use crate::settings::{
    CLIENT_KEYS, ClientTable, Key, POLICY_KEYS, POOL_KEYS, PolicyGiven, PolicyTable, PoolGiven, PoolTable,
    SHARE_KEYS, ShareGiven, ShareTable, USER_KEYS, UserGiven, UserTable, check_client,
};

type Value<'i> = Spanned<DeValue<'i>>;

impl Reader<'_> {
    /// The shares of a file, as far as they are right.
    pub(super) fn read_shares(&mut self, value: Option<&Value<'_>>) -> Vec<ShareGiven> {
        let mut shares = Vec::new();
        for element in self.elements("share", "\"NAME=DIR\"", value) {
            let share = match element.get_ref() {
                DeValue::String(text) => self.taken(element, "data=/srv/data", text.parse()),
                DeValue::Table(table) => self.read_share(&element.span(), table),
                _ => None,
            };
            let Some(share) = share else { continue };
            let section = Section::share(&share.0.name);
            if self.is_new(&section, &element.span(), element.get_ref(), "shares", &share.0.name) {
                shares.push(share);
            }
        }
        shares
    }

    /// The users of a file, as far as they are right.
    pub(super) fn read_users(&mut self, value: Option<&Value<'_>>) -> Vec<UserGiven> {
        let mut users = Vec::new();
        for element in self.elements("user", "\"NAME[=UID[:GID]]:PASSWORD\"", value) {
            let user = match element.get_ref() {
                DeValue::String(text) => self.taken(element, "anna=1000:100:PASSWORD", text.parse()),
                DeValue::Table(table) => self.read_user(&element.span(), table),
                _ => None,
            };
            let Some(user) = user else { continue };
            let section = Section::user(&user.name);
            if self.is_new(&section, &element.span(), element.get_ref(), "users", &user.name) {
                users.push(user);
            }
        }
        users
    }

    /// The snapshot policies of a file, as far as they are right.
    pub(super) fn read_policies(&mut self, value: Option<&Value<'_>>) -> Vec<PolicyGiven> {
        let mut policies = Vec::new();
        for element in self.elements("snapshot-policy", "tables", value) {
            let DeValue::Table(table) = element.get_ref() else {
                let what =
                    "snapshot-policy: expected tables [[snapshot-policy]], with two brackets".to_owned();
                self.mistake(&element.span(), what, "Write [[snapshot-policy]].");
                continue;
            };
            let Some(policy) = self.read_policy(&element.span(), table) else { continue };
            let name = policy.0.policy.name();
            let section = Section::policy(name);
            if self.is_new(&section, &element.span(), element.get_ref(), "snapshot policies", name) {
                policies.push(policy);
            }
        }
        policies
    }

    /// The pools of a file, as far as they are right.
    pub(super) fn read_pools(&mut self, value: Option<&Value<'_>>) -> Vec<PoolGiven> {
        let mut pools = Vec::new();
        for element in self.elements("pool", "tables", value) {
            let DeValue::Table(table) = element.get_ref() else {
                let what = "pool: expected tables [[pool]], with two brackets".to_owned();
                self.mistake(&element.span(), what, "Write [[pool]].");
                continue;
            };
            let Some(pool) = self.read_pool(&element.span(), table) else { continue };
            let section = Section::pool(&pool.0.name);
            if self.is_new(&section, &element.span(), element.get_ref(), "pools", &pool.0.name) {
                pools.push(pool);
            }
        }
        pools
    }

    fn read_pool(&mut self, part: &Range<usize>, table: &DeTable<'_>) -> Option<PoolGiven> {
        let (read, dropped): (PoolTable, _) = self.read_keys(table, &POOL_KEYS);
        let is_whole = self.has(part, table, "pool", (&POOL_KEYS, 2));
        let settled = read.settle();
        let settled = settled.map_err(|wrong| self.tell(table, &POOL_KEYS, &dropped, wrong));
        settled.ok().filter(|_| is_whole && dropped.is_empty())
    }

    fn read_policy(&mut self, part: &Range<usize>, table: &DeTable<'_>) -> Option<PolicyGiven> {
        let (read, dropped): (PolicyTable, _) = self.read_keys(table, &POLICY_KEYS);
        let is_whole = self.has(part, table, "snapshot policy", (&POLICY_KEYS, 1));
        let settled = read.settle();
        let settled = settled.map_err(|wrong| self.tell(table, &POLICY_KEYS, &dropped, wrong));
        settled.ok().filter(|_| is_whole)
    }

    /// The elements of a list of tables and texts.
    fn elements<'v, 'i>(
        &mut self,
        name: &str,
        text: &str,
        value: Option<&'v Value<'i>>,
    ) -> Vec<&'v Value<'i>> {
        let Some(value) = value else { return Vec::new() };
        let expected = format!("expected tables [[{name}]], with two brackets, or a list of {text}");
        let DeValue::Array(elements) = value.get_ref() else {
            self.mistake(&value.span(), format!("{name}: {expected}"), format!("Write [[{name}]]."));
            return Vec::new();
        };
        let (right, wrong): (Vec<_>, Vec<_>) = elements
            .iter()
            .partition(|element| matches!(element.get_ref(), DeValue::Table(_) | DeValue::String(_)));
        for element in wrong {
            self.mistake(&element.span(), format!("{name}: {expected}"), format!("Write [[{name}]]."));
        }
        right
    }

    /// What was read of a text; `example` is one that is right.
    fn taken<T>(&mut self, value: &Value<'_>, example: &str, read: Result<T, String>) -> Option<T> {
        let advice = || format!("For example: {example}");
        read.map_err(|what| self.mistake(&value.span(), what, advice())).ok()
    }

    /// Whether a section has this name for the first time; notes where it stands.
    fn is_new(
        &mut self,
        section: &Section,
        part: &Range<usize>,
        value: &DeValue<'_>,
        of: &str,
        name: &str,
    ) -> bool {
        if let Some(other) = self.places.of(section, Places::WHOLE).cloned() {
            let what = format!("two {of} have the name {name}: the other is in {other}");
            self.mistake(part, what, "Names are compared without regard to case.");
            return false;
        }
        let none = DeTable::new();
        self.enter(section, Some(part), value.as_table().unwrap_or(&none));
        true
    }

    fn read_share(&mut self, part: &Range<usize>, table: &DeTable<'_>) -> Option<ShareGiven> {
        let mut rest = table.clone();
        let clients = rest.remove("client");
        let (mut read, dropped): (ShareTable, _) = self.read_keys(&rest, &SHARE_KEYS);
        read.client = self.read_clients(clients.as_ref());
        let is_whole = self.has(part, table, "share", (&SHARE_KEYS, 2));
        let (share, wrong) = read.settle();
        self.tell(table, &SHARE_KEYS, &dropped, wrong);
        let is_named = !share.0.name.is_empty() && !share.0.directory.as_os_str().is_empty();
        (is_whole && is_named).then_some(share)
    }

    /// The entries of a client list, in one line each.
    fn read_clients(&mut self, value: Option<&Value<'_>>) -> Vec<String> {
        let mut lines = Vec::new();
        for element in self.elements("share.client", "\"NETWORK [access=rw|ro] ...\"", value) {
            let line = match element.get_ref() {
                DeValue::Table(table) => {
                    let (read, dropped): (ClientTable, _) = self.read_keys(table, &CLIENT_KEYS);
                    let is_whole = self.has(&element.span(), table, "entry", (&CLIENT_KEYS, 1));
                    (is_whole && dropped.is_empty()).then(|| read.line())
                }
                DeValue::String(line) => Some(line.to_string()),
                _ => None,
            };
            let Some(line) = line else { continue };
            match check_client(&line) {
                Ok(()) => lines.push(line),
                Err(what) => self.mistake(&element.span(), what, "For example: network = \"10.0.0.0/8\""),
            }
        }
        lines
    }

    fn read_user(&mut self, part: &Range<usize>, table: &DeTable<'_>) -> Option<UserGiven> {
        let (read, dropped): (UserTable, _) = self.read_keys(table, &USER_KEYS);
        let is_whole = self.has(part, table, "user", (&USER_KEYS, 1));
        let (user, wrong) = read.settle();
        self.tell(table, &USER_KEYS, &dropped, wrong);
        (is_whole && !user.name.is_empty()).then_some(user)
    }

    /// Whether a table has the first `required` of these keys. A key that was only misspelt is not told again.
    fn has(
        &mut self,
        part: &Range<usize>,
        table: &DeTable<'_>,
        of: &str,
        (keys, required): (&[Key], usize),
    ) -> bool {
        let names = || keys.iter().map(|key| key.name);
        let is_unknown = |name: &&str| names().all(|known| known != *name);
        let unknown = table.keys().map(|name| name.get_ref().as_ref()).filter(is_unknown);
        let meant: Vec<&str> = unknown.filter_map(|name| nearest(name, names())).collect();
        let missing: Vec<&Key> =
            keys.iter().take(required).filter(|key| !table.contains_key(key.name)).collect();
        for key in missing.iter().filter(|key| !meant.contains(&key.name)) {
            let advice = format!("For example: {} = {}", key.name, key.example);
            self.mistake(part, format!("the {of} has no `{}`", key.name), advice);
        }
        missing.is_empty()
    }

    /// Tells what is wrong with values, each at its key. What is missing or `dropped` was told as such.
    fn tell(
        &mut self,
        table: &DeTable<'_>,
        known: &[Key],
        dropped: &[&str],
        wrong: Vec<(&'static str, String)>,
    ) {
        for (key, what) in wrong.into_iter().filter(|(key, _)| !dropped.contains(key)) {
            let Some((name, _)) = table.get_key_value(key) else { continue };
            let known = known.iter().find(|known| known.name == key);
            let advice = known.map(|known| format!("For example: {key} = {}", known.example));
            self.mistake(&name.span(), what, advice.unwrap_or_default());
        }
    }
}
