//! Tokens that can be made and withdrawn, in the form of the API: `/v1/tokens`; and what their bearers may do.

use std::fmt;

use axum::http::Method;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::token::{Digest, Token};

/// What the bearer of a token may do: [`Scope::allows`]. The greatest is the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Read: clients, shares, users, activity, and metrics with the names of clients.
    Read,
    /// What `read` allows; create, change and remove shares, and record the operations of clients.
    Shares,
    /// Read all that is in any share, to replicate it, and nothing else.
    Replicate,
    /// Everything, including users and tokens.
    All,
}

impl Scope {
    /// The name of the scope for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Shares => "shares",
            Self::Replicate => "replicate",
            Self::All => "all",
        }
    }
}

impl Scope {
    /// Whether its bearer may make a call that needs this scope.
    #[must_use]
    pub fn allows(self, needed: Self) -> bool {
        match self {
            Self::All => true,
            Self::Shares => matches!(needed, Self::Shares | Self::Read),
            Self::Read | Self::Replicate => needed == self,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// All tokens that were made, by name, without the token in the state directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<TokenInfo>,
}

/// What is shown of a token: never the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// The name of the token.
    pub name: String,
    /// What the bearer may do.
    pub scope: Scope,
    /// When the token was made, in seconds of the Unix epoch.
    pub made: u64,
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// The name of the token.
    pub name: String,
    /// What the bearer may do.
    pub scope: Scope,
}

/// A token that was just made. This is the only time that the token is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeToken {
    /// The name of the token.
    pub name: String,
    /// What the bearer may do.
    pub scope: Scope,
    /// When the token was made, in seconds of the Unix epoch.
    pub made: u64,
    /// The token that its bearer presents.
    pub token: String,
}

impl fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeToken")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// A token that is accepted. Only its digest is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownToken {
    /// The name of the token.
    pub name: String,
    /// What the bearer may do.
    pub scope: Scope,
    /// SHA-256 of the token in its written form.
    pub digest: Digest,
}

/// The tokens that the server accepts: the one in the state directory, which may do everything, and those that were
/// made.
#[derive(Debug)]
pub struct KnownTokens {
    own: Digest,
    /// Guards the list of tokens that were made.
    made: RwLock<Vec<KnownToken>>,
}

/// The bearer of a token, or an administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bearer {
    pub(crate) shown: Shown,
    pub(crate) scope: Scope,
}

/// What a caller has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The token in the state directory.
    OwnToken,
    /// The token of this name.
    Token(String),
    /// The password of the account of this name.
    Password(String),
}

impl Shown {
    /// The name of the token or account, for logs.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::OwnToken => "control-token",
            Self::Token(name) | Self::Password(name) => name,
        }
    }
}

impl KnownTokens {
    /// The token in the state directory, and those that were made.
    #[must_use]
    pub fn new(own: &Token, made: Vec<KnownToken>) -> Self {
        Self { own: own.digest(), made: RwLock::new(made) }
    }

    /// Accepts a token from now on. It replaces a token with the same name.
    pub fn take(&self, token: KnownToken) {
        let mut made = self.made.write();
        made.retain(|known| known.name != token.name);
        made.push(token);
    }

    /// No longer accepts a token.
    pub fn withdraw(&self, name: &str) {
        self.made.write().retain(|known| known.name != name);
    }

    /// The bearer of the token in this `Authorization` header. Digests are compared, so the time that takes reveals
    /// nothing of a token.
    pub(crate) fn bearer(&self, header: &[u8]) -> Option<Bearer> {
        self.holder(Digest::of(Token::shown(header)?))
    }

    /// The holder of the token with this digest, while it is accepted.
    pub(crate) fn holder(&self, shown: Digest) -> Option<Bearer> {
        if shown == self.own {
            return Some(Bearer { shown: Shown::OwnToken, scope: Scope::All });
        }
        let made = self.made.read();
        let known = made.iter().find(|known| known.digest == shown)?;
        Some(Bearer { shown: Shown::Token(known.name.clone()), scope: known.scope })
    }
}

/// The scope that a call of the API needs. Unknown calls need every right.
pub(crate) fn needed(method: &Method, path: &str) -> Scope {
    let looks = [Method::GET, Method::HEAD].contains(method);
    let mut parts = path.trim_start_matches("/v1").trim_start_matches('/').split('/');
    let (thing, part) = (parts.next(), parts.nth(1));
    match thing {
        // The log names users, clients and files.
        Some("tokens" | "log") => Scope::All,
        Some("replication") => Scope::Replicate,
        // To sign out is for everybody who is signed in.
        Some("sign-in") => Scope::Read,
        // Reading a recording removes the data for the caller that began it.
        Some("simulations") => Scope::Shares,
        Some("shares") if !looks || part == Some("trace") => Scope::Shares,
        Some("policies") if !looks => Scope::Shares,
        Some("vservers") if !looks && part == Some("shares") => Scope::Shares,
        // Who removes shares brings them back. What is purged is gone.
        Some("deleted-shares") if method == Method::POST => Scope::Shares,
        _ if looks => Scope::Read,
        _ => Scope::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_allows_what_it_says() {
        let all = [Scope::Read, Scope::Shares, Scope::Replicate, Scope::All];
        let allowed = |scope: Scope| all.map(|needed| scope.allows(needed));
        assert_eq!(allowed(Scope::Read), [true, false, false, false]);
        assert_eq!(allowed(Scope::Shares), [true, true, false, false]);
        assert_eq!(allowed(Scope::Replicate), [false, false, true, false]);
        assert_eq!(allowed(Scope::All), [true; 4]);
        for scope in all {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
        }
    }

    #[test]
    fn looking_is_for_all_shares_for_some_and_the_rest_for_few() {
        let cases = [
            ("GET", "/v1/clients", Scope::Read),
            ("GET", "/v1/openapi.json", Scope::Read),
            ("GET", "/v1/shares", Scope::Read),
            ("HEAD", "/v1/shares/a", Scope::Read),
            ("GET", "/v1/shares/a/activity", Scope::Read),
            ("GET", "/v1/users", Scope::Read),
            ("GET", "/v1/nothing", Scope::Read),
            ("POST", "/v1/shares", Scope::Shares),
            ("PATCH", "/v1/shares/a", Scope::Shares),
            ("DELETE", "/v1/shares/a", Scope::Shares),
            ("GET", "/v1/shares/a/trace", Scope::Shares),
            ("POST", "/v1/shares/a/trace", Scope::Shares),
            ("GET", "/v1/shares/a/snapshots", Scope::Read),
            ("POST", "/v1/shares/a/snapshots", Scope::Shares),
            ("POST", "/v1/shares/a/revert", Scope::Shares),
            ("GET", "/v1/shares/a/restore", Scope::Read),
            ("POST", "/v1/shares/a/restore", Scope::Shares),
            ("DELETE", "/v1/shares/a/restore", Scope::Shares),
            ("DELETE", "/v1/shares/a/snapshots/b", Scope::Shares),
            ("PATCH", "/v1/shares/a/snapshots/b", Scope::Shares),
            ("GET", "/v1/shares/a/replication", Scope::Read),
            ("POST", "/v1/shares/a/replication", Scope::Shares),
            ("PATCH", "/v1/shares/a/replication", Scope::Shares),
            ("DELETE", "/v1/shares/a/replication", Scope::Shares),
            ("GET", "/v1/shares/a/destinations", Scope::Read),
            ("DELETE", "/v1/shares/a/destinations/b", Scope::Shares),
            ("GET", "/v1/replication/a", Scope::Replicate),
            ("POST", "/v1/replication/a/transfers", Scope::Replicate),
            ("GET", "/v1/policies", Scope::Read),
            ("GET", "/v1/shares/a/quotas", Scope::Read),
            ("POST", "/v1/shares/a/quotas", Scope::Shares),
            ("PUT", "/v1/shares/a/quotas/b", Scope::Shares),
            ("DELETE", "/v1/shares/a/quotas/b", Scope::Shares),
            ("GET", "/v1/shares/a/ransomware-alarms", Scope::Read),
            ("DELETE", "/v1/shares/a/ransomware-alarms/1", Scope::Shares),
            ("POST", "/v1/policies", Scope::Shares),
            ("GET", "/v1/deleted-shares", Scope::Read),
            ("POST", "/v1/deleted-shares/7/undelete", Scope::Shares),
            ("DELETE", "/v1/deleted-shares/7", Scope::All),
            ("DELETE", "/v1/policies/a", Scope::Shares),
            ("GET", "/v1/files", Scope::Read),
            ("GET", "/v1/status", Scope::Read),
            ("DELETE", "/v1/files/1-2", Scope::All),
            ("DELETE", "/v1/clients/10.0.0.1", Scope::All),
            ("POST", "/v1/users", Scope::All),
            ("DELETE", "/v1/users/a", Scope::All),
            ("PATCH", "/v1/users/shares", Scope::All),
            ("GET", "/v1/log", Scope::All),
            ("GET", "/v1/findings", Scope::Read),
            ("POST", "/v1/simulations", Scope::Shares),
            ("GET", "/v1/clients/10.0.0.1/advice", Scope::Read),
            ("GET", "/v1/sign-in", Scope::Read),
            ("DELETE", "/v1/sign-in", Scope::Read),
            ("GET", "/v1/tokens", Scope::All),
            ("POST", "/v1/tokens", Scope::All),
            ("DELETE", "/v1/tokens/a", Scope::All),
            ("POST", "/v1/nothing", Scope::All),
        ];
        check_needed(&cases);
    }

    #[test]
    fn clusters_are_changed_by_few() {
        let cases = [
            ("GET", "/v1/vservers", Scope::Read),
            ("PUT", "/v1/vservers/shares/keytab", Scope::All),
            ("GET", "/v1/vservers/files/shares", Scope::Read),
            ("POST", "/v1/vservers/files/shares", Scope::Shares),
            ("PATCH", "/v1/vservers/files/shares/data", Scope::Shares),
            ("DELETE", "/v1/vservers/files/shares/data", Scope::Shares),
            ("POST", "/v1/vservers/files/shares/data/move", Scope::Shares),
            ("POST", "/v1/vservers/shares/move", Scope::All),
            ("DELETE", "/v1/vservers/shares", Scope::All),
            ("DELETE", "/v1/vservers/shares/keytab", Scope::All),
            ("GET", "/v1/cluster/users", Scope::Read),
            ("POST", "/v1/cluster/users", Scope::All),
            ("DELETE", "/v1/cluster/users/a", Scope::All),
        ];
        check_needed(&cases);
    }

    /// Checks which scope each call needs.
    fn check_needed(cases: &[(&str, &str, Scope)]) {
        for (method, path, scope) in cases {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(needed(&method, path), *scope, "{method} {path}");
        }
    }

    #[test]
    fn a_token_is_taken_until_it_is_withdrawn() {
        let (own, other) = (Token::new([7; 32]), Token::new([8; 32]));
        let known = KnownTokens::new(&own, Vec::new());
        let bearer = |token: &Token| known.bearer(format!("Bearer {}", token.as_str()).as_bytes());
        assert_eq!(bearer(&own), Some(Bearer { shown: Shown::OwnToken, scope: Scope::All }));
        assert_eq!(bearer(&other), None);
        let token = KnownToken { name: "prometheus".to_owned(), scope: Scope::Read, digest: other.digest() };
        known.take(token);
        assert_eq!(
            bearer(&other),
            Some(Bearer { shown: Shown::Token("prometheus".to_owned()), scope: Scope::Read })
        );
        known.withdraw("prometheus");
        assert_eq!((bearer(&other), bearer(&own).is_some()), (None, true));
    }

    #[test]
    fn a_token_is_not_printed() {
        let made = MadeToken { name: "a".to_owned(), scope: Scope::Read, made: 1, token: "hush".to_owned() };
        assert!(!format!("{made:?}").contains("hush"));
    }
}
