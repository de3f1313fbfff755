//! Signing in to the console, and out: `/v1/sign-in`.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::{Brake, Failed};
use aws_lc_rs::rand;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::About;
use crate::administration::{Refusal, RefusalKind};
use crate::administrators::Administrator;
use crate::api::{read, refuse};
use crate::authorization::{Admitted, SignedInHere, is_of_another_page, refuse_other_page};
use crate::cookie;
use crate::server::Peer;
use crate::sign_ins::{AGE_MAX, Begun, Holder};
use crate::token::{Digest, Token};
use crate::tokens::{Bearer, Scope, Shown};

/// The account under which failed sign-ins are counted: a token has no name until it is known.
const ACCOUNT: &str = "console";

/// A token, or the name and password of an administrator's account, that is shown to sign in. It is never logged.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewSignIn {
    /// The token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The name of the account, in place of a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

impl fmt::Debug for NewSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewSignIn(..)")
    }
}

/// Who makes the calls: the holder of a token, or somebody who is signed in with one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// The name of the token; none for the token in the state directory, and for an administrator.
    pub token: Option<String>,
    /// The account of an administrator; none for the holder of a token.
    pub user: Option<String>,
    /// What the holder may do.
    pub scope: Scope,
    /// What a page shows in the header `X-CSRF-Token` of its calls; none if the token itself came with the call.
    pub csrf: Option<String>,
    /// How long the sign-in lasts at most; none if the token itself came with the call.
    pub seconds_left: Option<u64>,
}

impl SignIn {
    fn new(Bearer { shown, scope }: Bearer, signed_in: Option<SignedInHere>) -> Self {
        let (csrf, left) = signed_in.map(|SignedInHere { csrf, left }| (csrf, left)).unzip();
        let (token, user) = match shown {
            Shown::OwnToken => (None, None),
            Shown::Token(name) => (Some(name), None),
            Shown::Password(name) => (None, Some(name)),
        };
        Self {
            token,
            user,
            scope,
            csrf: csrf.map(|csrf| csrf.as_str().to_owned()),
            seconds_left: left.map(|left| left.as_secs()),
        }
    }
}

/// Failed sign-ins, which are delayed as logons are.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// Guards the counts of failures.
    brake: Mutex<Brake>,
}

/// What to do with a sign-in.
enum Verdict {
    After(Duration),
    Unheard,
}

impl Throttle {
    /// A sign-in from `peer` with this account has failed.
    fn failed(&self, peer: Peer, account: &str, now: Instant) -> Verdict {
        match self.brake.lock().failed(peer.client.ip(), account, now) {
            Some(Failed { delay, .. }) => Verdict::After(delay),
            None => Verdict::Unheard,
        }
    }

    /// A sign-in from `peer` with this account has succeeded.
    fn passed(&self, peer: Peer, account: &str, now: Instant) -> Verdict {
        self.brake.lock().passed(peer.client.ip(), account, now).map_or(Verdict::Unheard, Verdict::After)
    }
}

pub(crate) async fn sign_in(
    State(about): State<Arc<About>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Response> {
    // Only a page of this origin can make a browser send JSON without asking the server first.
    let is_json =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_of_another_page(&headers) || !is_json {
        return Err(refuse_other_page());
    }
    let (holder, bearer) = match read(&body).map_err(IntoResponse::into_response)? {
        NewSignIn { token: Some(token), user: None, password: None } => {
            by_token(&about, peer, Digest::of(token.trim().as_bytes())).await?
        }
        NewSignIn { token: None, user: Some(user), password: Some(password) } => {
            let (administrator, bearer) = by_password(&about, peer, &user, &password).await?;
            (Holder::Administrator(administrator), bearer)
        }
        NewSignIn { .. } => {
            let what = "a sign-in shows a token, or the user and the password of an account";
            return Err(Refusal::new(RefusalKind::Invalid, what, "").into_response());
        }
    };
    let secrets = secrets().map_err(IntoResponse::into_response)?;
    about.sign_ins.begin(holder, &secrets, Instant::now());
    tracing::info!(peer = %peer.client, name = bearer.shown.name(), scope = %bearer.scope, "signed in to the console");
    let cookie = cookie::given(about.transport, &headers, &secrets.cookie);
    let signed_in = SignedInHere { csrf: secrets.csrf, left: AGE_MAX };
    let answer = Json(SignIn::new(bearer.clone(), Some(signed_in)));
    // The access log says who has signed in.
    Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Extension(bearer), answer).into_response())
}

/// The holder of the token with this digest.
async fn by_token(about: &About, peer: Peer, token: Digest) -> Result<(Holder, Bearer), Response> {
    let now = Instant::now();
    let Some(bearer) = about.subject.tokens.holder(token) else {
        let verdict = about.throttle.failed(peer, ACCOUNT, now);
        wait(verdict).await?;
        about.complaints.warn(peer.client, "showed a wrong token", &"a sign-in to the console");
        return Err(wrong_token());
    };
    let verdict = about.throttle.passed(peer, ACCOUNT, now);
    wait(verdict).await?;
    Ok((Holder::Token(token), bearer))
}

/// The administrator with this account and password. Whoever guesses does not learn which of the two is wrong, nor whether the
/// user is an administrator.
pub(crate) async fn by_password(
    about: &About,
    peer: Peer,
    user: &str,
    password: &str,
) -> Result<(Administrator, Bearer), Response> {
    let now = Instant::now();
    let Some((administrator, scope)) = about.subject.administrators.known(user, password) else {
        let verdict = about.throttle.failed(peer, user, now);
        wait(verdict).await?;
        let what = format_args!("the account {user:?}");
        about.complaints.warn(peer.client, "showed no account and password of an administrator", &what);
        return Err(wrong_password());
    };
    let verdict = about.throttle.passed(peer, user, now);
    wait(verdict).await?;
    let bearer = Bearer { shown: Shown::Password(administrator.name.clone()), scope };
    Ok((administrator, bearer))
}

pub(crate) async fn signed_in(Extension(admitted): Extension<Admitted>) -> Json<SignIn> {
    Json(SignIn::new(admitted.bearer, admitted.signed_in))
}

pub(crate) async fn sign_out(
    State(about): State<Arc<About>>,
    Extension(admitted): Extension<Admitted>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = cookie::shown(about.transport, &headers).filter(|_| admitted.signed_in.is_some());
    let shown = shown.ok_or_else(|| {
        let what = "the call came with a token, and nobody is signed in with it here";
        Refusal::new(RefusalKind::NotFound, what, "")
    })?;
    about.sign_ins.end(shown);
    let cookie = cookie::taken(about.transport, &headers);
    Ok(([(SET_COOKIE, cookie)], Json(SignIn::new(admitted.bearer, None))).into_response())
}

/// Waits as the verdict says.
async fn wait(verdict: Verdict) -> Result<(), Response> {
    match verdict {
        Verdict::After(delay) => {
            tokio::time::sleep(delay).await;
            Ok(())
        }
        Verdict::Unheard => {
            let message = "too many sign-ins from this address have failed, so this one was not looked at";
            let again = "Try again in ten seconds.";
            let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "throttled", message, again);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
            Err(response)
        }
    }
}

fn wrong_token() -> Response {
    let message = "this is not a token of this server, or it was revoked";
    let advice = "Make one on the server: anabranch token create NAME --scope read (or shares, or all)";
    refuse(StatusCode::UNAUTHORIZED, "wrong-token", message, advice)
}

fn wrong_password() -> Response {
    let message = "no administrator of this server has this account and password";
    let advice = "The configuration names the administrators: admins = [\"NAME\", \"@GROUP\"]. Their passwords are those of their accounts.";
    refuse(StatusCode::UNAUTHORIZED, "wrong-password", message, advice)
}

fn secrets() -> Result<Begun, Refusal> {
    Ok(Begun { cookie: random()?, csrf: random()? })
}

/// A secret that nobody can guess.
fn random() -> Result<Token, Refusal> {
    let mut bytes = [0; 32];
    let failed = |_| Refusal::new(RefusalKind::Failed, "the system has no random numbers", "");
    rand::fill(&mut bytes).map_err(failed)?;
    Ok(Token::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_printed() {
        assert_eq!(
            format!("{:?}", NewSignIn { token: Some("hush".to_owned()), ..NewSignIn::default() }),
            "NewSignIn(..)"
        );
    }
}
