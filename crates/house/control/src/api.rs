//! The API below `/v1`: JSON, for callers with a token. [`crate::openapi`] describes it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use axum::{Extension, Json, Router};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use share::Recorded;

use crate::administration::{Administration, Refusal, RefusalKind};
use crate::authorization::authorize;
use crate::clients::Clients;
use crate::configuration::{Configuration, Reload};
use crate::files::{self, ClientName, Closed, Disconnected, FileId, Filter, NotAClient, NotAFileId};
use crate::findings::Findings;
use crate::logged::Concerned;
use crate::program::{Advices, Log};
use crate::sign_in;
use crate::simulation::{NewSimulation, SimulatedPlan};
use crate::tokens as of_tokens;
use crate::trace::{NewTrace, TracePart};
use crate::{
    About, activity, cluster_calls, deleted_share_calls, findings, policy_calls, pool_calls, quota_calls,
    ransomware_calls, replication_calls, restore_calls, simulation, snapshot_calls, trace,
    vserver_share_calls,
};

/// The most bytes of a request's body: one call has a longer one.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// How long a share may be recorded.
const TRACE_SECONDS: RangeInclusive<u64> = 1..=86_400;

/// For how long a client may be watched: less than a connection may take.
const ADVICE_SECONDS: RangeInclusive<u64> = 1..=20;

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// For programs: the kind of error, stable.
    pub error: String,
    /// For people: what was wrong.
    pub message: String,
    /// For people: what to do about it; may be empty.
    #[serde(default)]
    pub advice: String,
}

/// A path below `/v1`, with its methods.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    /// In lower case, as in OpenAPI, for the test that compares the description with the routes.
    #[cfg_attr(not(test), expect(dead_code, reason = "see above"))]
    pub(crate) methods: &'static [&'static str],
    handlers: fn() -> MethodRouter<Arc<About>>,
}

/// All of them.
pub(crate) const ROUTES: &[Route] = &[
    Route { path: "/openapi.json", methods: &["get"], handlers: || get(describe) },
    Route { path: "/clients", methods: &["get"], handlers: || get(clients) },
    Route { path: "/clients/{client}", methods: &["delete"], handlers: || delete(disconnect) },
    Route { path: "/clients/{client}/activity", methods: &["get"], handlers: || get(client_activity) },
    Route { path: "/clients/{client}/advice", methods: &["get"], handlers: || get(advice) },
    Route { path: "/findings", methods: &["get"], handlers: || get(findings) },
    Route { path: "/files", methods: &["get"], handlers: || get(files) },
    Route { path: "/files/{id}", methods: &["delete"], handlers: || delete(close_file) },
    Route { path: "/locks", methods: &["get"], handlers: || get(locks) },
    Route { path: "/shares", methods: &["get", "post"], handlers: || get(shares).post(create_share) },
    Route {
        path: "/shares/{name}",
        methods: &["get", "patch", "delete"],
        handlers: || get(share).patch(change_share).delete(remove_share),
    },
    Route { path: "/shares/{name}/activity", methods: &["get"], handlers: || get(share_activity) },
    Route {
        path: "/shares/{name}/trace",
        methods: &["get", "post"],
        handlers: || get(trace_part).post(begin_trace),
    },
    Route {
        path: "/shares/{name}/snapshots",
        methods: &["get", "post"],
        handlers: || get(snapshot_calls::list).post(snapshot_calls::take),
    },
    Route {
        path: "/shares/{name}/snapshots/{snapshot}",
        methods: &["patch", "delete"],
        handlers: || patch(snapshot_calls::change).delete(snapshot_calls::remove),
    },
    Route { path: "/shares/{name}/revert", methods: &["post"], handlers: || post(snapshot_calls::revert) },
    Route {
        path: "/shares/{name}/quotas",
        methods: &["get", "post"],
        handlers: || get(quota_calls::list).post(quota_calls::check),
    },
    Route {
        path: "/shares/{name}/quotas/{subject}",
        methods: &["put", "delete"],
        handlers: || put(quota_calls::set).delete(quota_calls::remove),
    },
    Route {
        path: "/shares/{name}/ransomware-alarms",
        methods: &["get"],
        handlers: || get(ransomware_calls::list),
    },
    Route {
        path: "/shares/{name}/ransomware-alarms/{number}",
        methods: &["delete"],
        handlers: || delete(ransomware_calls::end),
    },
    Route {
        path: "/shares/{name}/restore",
        methods: &["get", "post", "delete"],
        handlers: || get(restore_calls::show).post(restore_calls::begin).delete(restore_calls::cancel),
    },
    Route {
        path: "/shares/{name}/replication",
        methods: &["get", "post", "patch", "delete"],
        handlers: || {
            get(replication_calls::show)
                .post(replication_calls::begin)
                .patch(replication_calls::change)
                .delete(replication_calls::end)
        },
    },
    Route {
        path: "/shares/{name}/destinations",
        methods: &["get"],
        handlers: || get(replication_calls::destinations),
    },
    Route {
        path: "/shares/{name}/destinations/{destination}",
        methods: &["delete"],
        handlers: || delete(replication_calls::remove_destination),
    },
    Route { path: "/replication/{name}", methods: &["get"], handlers: || get(replication_calls::source) },
    Route {
        path: "/replication/{name}/transfers",
        methods: &["post"],
        handlers: || post(replication_calls::transfer),
    },
    Route {
        path: "/replication/{name}/transfers/{destination}",
        methods: &["delete"],
        handlers: || delete(replication_calls::remove_destination),
    },
    Route {
        path: "/replication/{name}/transfers/{destination}/changes",
        methods: &["get"],
        handlers: || get(replication_calls::changes),
    },
    Route {
        path: "/replication/{name}/transfers/{destination}/objects",
        methods: &["post"],
        handlers: || post(replication_calls::objects),
    },
    Route {
        path: "/policies",
        methods: &["get", "post"],
        handlers: || get(policy_calls::list).post(policy_calls::create),
    },
    Route {
        path: "/policies/{name}",
        methods: &["get", "patch", "delete"],
        handlers: || get(policy_calls::show).patch(policy_calls::change).delete(policy_calls::remove),
    },
    Route {
        path: "/cluster",
        methods: &["get", "post"],
        handlers: || get(cluster_calls::show).post(cluster_calls::init),
    },
    Route { path: "/cluster/gateways", methods: &["post"], handlers: || post(cluster_calls::join) },
    Route {
        path: "/cluster/gateways/{name}",
        methods: &["delete"],
        handlers: || delete(cluster_calls::leave),
    },
    Route {
        path: "/cluster/gateways/{name}/drain",
        methods: &["post"],
        handlers: || post(cluster_calls::drain),
    },
    Route {
        path: "/cluster/users",
        methods: &["get", "post"],
        handlers: || get(cluster_calls::users).post(cluster_calls::add_user),
    },
    Route {
        path: "/cluster/users/{name}",
        methods: &["patch", "delete"],
        handlers: || patch(cluster_calls::change_user).delete(cluster_calls::remove_user),
    },
    Route {
        path: "/vservers",
        methods: &["get", "post"],
        handlers: || get(cluster_calls::vservers).post(cluster_calls::create),
    },
    Route { path: "/vservers/{name}", methods: &["delete"], handlers: || delete(cluster_calls::remove) },
    Route { path: "/vservers/{name}/move", methods: &["post"], handlers: || post(cluster_calls::move_to) },
    Route {
        path: "/vservers/{name}/shares",
        methods: &["get", "post"],
        handlers: || get(vserver_share_calls::list).post(vserver_share_calls::add),
    },
    Route {
        path: "/vservers/{name}/shares/{share}",
        methods: &["get", "patch", "delete"],
        handlers: || {
            get(vserver_share_calls::show)
                .patch(vserver_share_calls::change)
                .delete(vserver_share_calls::remove)
        },
    },
    Route {
        path: "/vservers/{name}/shares/{share}/move",
        methods: &["post"],
        handlers: || post(vserver_share_calls::move_to),
    },
    Route {
        path: "/vservers/{name}/keytab",
        methods: &["put", "delete"],
        handlers: || {
            let handlers = put(cluster_calls::set_keytab).delete(cluster_calls::remove_keytab);
            handlers.layer(DefaultBodyLimit::max(cluster_calls::KEYTAB_BODY_BYTES_MAX))
        },
    },
    Route { path: "/pools", methods: &["get"], handlers: || get(pool_calls::list) },
    Route { path: "/deleted-shares", methods: &["get"], handlers: || get(deleted_share_calls::list) },
    Route {
        path: "/deleted-shares/{id}",
        methods: &["delete"],
        handlers: || delete(deleted_share_calls::purge),
    },
    Route {
        path: "/deleted-shares/{id}/undelete",
        methods: &["post"],
        handlers: || post(deleted_share_calls::undelete),
    },
    Route { path: "/domain", methods: &["get"], handlers: || get(domain) },
    Route { path: "/identities/{name}", methods: &["get"], handlers: || get(identity) },
    Route { path: "/simulations", methods: &["post"], handlers: || simulations() },
    Route { path: "/log", methods: &["get"], handlers: || get(log) },
    Route { path: "/configuration", methods: &["get"], handlers: || get(configuration) },
    Route { path: "/configuration/reload", methods: &["post"], handlers: || post(reload) },
    Route { path: "/activity", methods: &["get"], handlers: || get(all_activity) },
    Route {
        path: "/sign-in",
        methods: &["get", "post", "delete"],
        handlers: || get(sign_in::signed_in).post(sign_in::sign_in).delete(sign_in::sign_out),
    },
    Route { path: "/status", methods: &["get"], handlers: || get(status) },
    Route { path: "/users", methods: &["get", "post"], handlers: || get(users).post(add_user) },
    Route { path: "/tokens", methods: &["get", "post"], handlers: || get(tokens).post(make_token) },
    Route { path: "/tokens/{name}", methods: &["delete"], handlers: || delete(remove_token) },
    Route {
        path: "/users/{name}",
        methods: &["get", "patch", "delete"],
        handlers: || get(user).patch(change_user).delete(remove_user),
    },
];

/// The routes below `/v1`.
pub(crate) fn router(about: &Arc<About>) -> Router<Arc<About>> {
    let add = |router: Router<_>, route: &Route| router.route(route.path, (route.handlers)());
    ROUTES
        .iter()
        .fold(Router::new(), add)
        .fallback(async || refuse(StatusCode::NOT_FOUND, "no-such-call", "there is no such call", CALLS))
        .method_not_allowed_fallback(async || {
            let message = "the call is not made with this method";
            refuse(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", message, CALLS)
        })
        // This also covers the fallbacks: a caller without a token does not learn which calls exist.
        .layer(middleware::from_fn_with_state(Arc::clone(about), authorize))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

const CALLS: &str = "GET /v1/openapi.json describes all calls.";

pub(crate) fn refuse(status: StatusCode, error: &str, message: &str, advice: &str) -> Response {
    let body = ApiError { error: error.to_owned(), message: message.to_owned(), advice: advice.to_owned() };
    (status, Json(body)).into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refuse(self.status(), self.code(), &self.what, &self.advice)
    }
}

pub(crate) type JsonReply<T> = Result<Json<T>, Refusal>;

/// Runs a call of the administration on a thread that may wait for the disk.
pub(crate) async fn administer<T: Send + 'static>(
    about: Arc<About>,
    work: impl FnOnce(&dyn Administration) -> Result<T, Refusal> + Send + 'static,
) -> JsonReply<T> {
    on_thread(move || work(&*about.subject.administration)).await
}

/// Runs a call on a thread that may wait.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> JsonReply<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let failed =
        || Refusal::new(RefusalKind::Failed, "the server failed to carry it out", "Its log says why.");
    done.unwrap_or_else(|_| Err(failed())).map(Json)
}

/// Decodes the body of a request, whatever its Content-Type: a browser sends neither a token nor a CSRF token unasked.
pub(crate) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|e| {
        // The text may quote a value of the body, and a password if it stands in the wrong field: it goes back to its sender only, and
        // into no log.
        Refusal::new(RefusalKind::Invalid, format!("the body of the request: {e}"), CALLS)
    })
}

async fn describe() -> JsonReply<serde_json::Value> {
    let document = crate::openapi::document();
    document.map(Json).map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string(), ""))
}

async fn clients(State(about): State<Arc<About>>) -> JsonReply<Clients> {
    on_thread(move || Ok((about.subject.clients)())).await
}

async fn disconnect(State(about): State<Arc<About>>, Path(client): Path<String>) -> JsonReply<Disconnected> {
    const ADVICE: &str = "GET /v1/clients says who is connected.";
    let invalid = |e: NotAClient| Refusal::new(RefusalKind::Invalid, e.to_string(), ADVICE);
    let name: ClientName = client.parse().map_err(invalid)?;
    let Json(ended) = on_thread(move || about.subject.holdings.disconnect(name)).await?;
    if ended == Disconnected::default() {
        let what = format!("no client {client} is connected");
        return Err(Refusal::new(RefusalKind::NotFound, what, ADVICE));
    }
    Ok(Json(ended))
}

async fn files(State(about): State<Arc<About>>, filter: FilterQuery) -> JsonReply<files::Files> {
    let filter = read_filter(&about, filter)?;
    on_thread(move || Ok(files::in_answer(about.subject.holdings.files(&filter)))).await
}

async fn locks(State(about): State<Arc<About>>, filter: FilterQuery) -> JsonReply<files::Locks> {
    let filter = read_filter(&about, filter)?;
    on_thread(move || Ok(files::locks_in_answer(about.subject.holdings.locks(&filter)))).await
}

type FilterQuery = Result<Query<Filter>, QueryRejection>;

fn read_filter(about: &About, filter: FilterQuery) -> Result<Filter, Refusal> {
    let Query(filter) = filter.map_err(|e| unclear_query(&e))?;
    if let Some(share) = &filter.share {
        served(about, share)?;
    }
    Ok(filter)
}

pub(crate) fn unclear_query(e: &QueryRejection) -> Refusal {
    Refusal::new(RefusalKind::Invalid, format!("the query: {}", e.body_text()), CALLS)
}

async fn close_file(State(about): State<Arc<About>>, Path(id): Path<String>) -> JsonReply<Closed> {
    const ADVICE: &str = "GET /v1/files lists what is open.";
    let invalid = |e: NotAFileId| Refusal::new(RefusalKind::Invalid, e.to_string(), ADVICE);
    let file: FileId = id.parse().map_err(invalid)?;
    let Json(closed) = on_thread(move || about.subject.holdings.close(file)).await?;
    if !closed {
        return Err(Refusal::new(RefusalKind::NotFound, format!("no open file has the ID {id}"), ADVICE));
    }
    Ok(Json(Closed { id: file }))
}

async fn status(State(about): State<Arc<About>>) -> JsonReply<crate::status::Status> {
    on_thread(move || crate::status::of(&about)).await
}

async fn client_activity(
    State(about): State<Arc<About>>,
    Path(client): Path<String>,
) -> JsonReply<activity::ClientActivity> {
    let found = activity::of_client(&about.subject.shares.present().in_order(), &client);
    found.map(Json).ok_or_else(|| {
        let what = format!("client {client} has called nothing of a share");
        Refusal::new(RefusalKind::NotFound, what, "GET /v1/clients says who is connected.")
    })
}

async fn shares(State(about): State<Arc<About>>) -> JsonReply<crate::shares::Shares> {
    administer(about, |administration| administration.shares()).await
}

async fn share(State(about): State<Arc<About>>, Path(name): Path<String>) -> JsonReply<crate::shares::Share> {
    administer(about, move |administration| administration.share(&name)).await
}

async fn create_share(State(about): State<Arc<About>>, body: Bytes) -> Result<Response, Refusal> {
    let new: crate::shares::NewShare = read(&body)?;
    let concerned = Concerned(new.name.clone());
    let made = administer(about, move |administration| administration.create_share(new)).await?;
    Ok((StatusCode::CREATED, Extension(concerned), made).into_response())
}

async fn change_share(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
    body: Bytes,
) -> JsonReply<crate::shares::Share> {
    let change = read(&body)?;
    administer(about, move |administration| administration.change_share(&name, change)).await
}

async fn remove_share(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
) -> JsonReply<crate::shares::Share> {
    administer(about, move |administration| administration.remove_share(&name)).await
}

async fn configuration(State(about): State<Arc<About>>) -> JsonReply<Configuration> {
    administer(about, |administration| administration.configuration()).await
}

async fn reload(State(about): State<Arc<About>>) -> JsonReply<Reload> {
    administer(about, |administration| administration.reload()).await
}

async fn all_activity(State(about): State<Arc<About>>) -> Json<activity::Activity> {
    Json(activity::of(&about.subject.shares.present().in_order()))
}

async fn share_activity(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
) -> JsonReply<activity::ShareActivity> {
    let share = served(&about, &name)?;
    Ok(Json(activity::of_share(&share)))
}

fn served(about: &About, name: &str) -> Result<Arc<share::Share>, Refusal> {
    let shares = about.subject.shares.present();
    shares.by_name(name).cloned().ok_or_else(|| {
        let what = format!("no share {name} is served");
        Refusal::new(RefusalKind::NotFound, what, "GET /v1/shares lists the shares.")
    })
}

async fn begin_trace(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let NewTrace { seconds } = read(&body)?;
    if !TRACE_SECONDS.contains(&seconds) {
        let (least, most) = (TRACE_SECONDS.start(), TRACE_SECONDS.end());
        let what = format!("seconds={seconds}: a recording takes {least} to {most} seconds");
        return Err(Refusal::new(RefusalKind::Invalid, what, ""));
    }
    let begun = served(&about, &name)?.record(Duration::from_secs(seconds));
    begun.map_err(|e| {
        let what = format!("the share {name}: {e}");
        Refusal::new(RefusalKind::Busy, what, "It ends by itself, also when nobody asks for what it has.")
    })?;
    tracing::info!(share = name, seconds, "operations are recorded");
    Ok((StatusCode::CREATED, Json(TracePart::default())).into_response())
}

async fn trace_part(State(about): State<Arc<About>>, Path(name): Path<String>) -> JsonReply<TracePart> {
    let Recorded { operations, lost, is_over } = served(&about, &name)?.take_recorded().ok_or_else(|| {
        let what = format!("nothing is recorded of the share {name}");
        Refusal::new(RefusalKind::NotFound, what, "Begin with POST.")
    })?;
    let lines = trace::write(&operations);
    Ok(Json(TracePart { lines, operations: operations.len() as u64, lost, over: is_over }))
}

/// The only call whose body is long.
fn simulations() -> MethodRouter<Arc<About>> {
    post(simulate).layer(DefaultBodyLimit::max(simulation::BODY_BYTES_MAX))
}

async fn simulate(body: Bytes) -> JsonReply<SimulatedPlan> {
    let new: NewSimulation = read(&body)?;
    on_thread(move || simulation::simulate(&new)).await
}

async fn findings(State(about): State<Arc<About>>) -> JsonReply<Findings> {
    on_thread(move || Ok(findings::of(&(about.subject.clients)()))).await
}

/// Which lines of the log are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// Only lines with a higher number.
    #[serde(default)]
    after: u64,
}

async fn log(
    State(about): State<Arc<About>>,
    query: Result<Query<LogQuery>, QueryRejection>,
) -> JsonReply<Log> {
    let Query(LogQuery { after }) = query.map_err(|e| unclear_query(&e))?;
    Ok(Json(about.subject.program.log(after)))
}

/// How long a client is watched before something is said of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdviceQuery {
    #[serde(default = "advice_seconds")]
    seconds: u64,
}

fn advice_seconds() -> u64 {
    5
}

async fn advice(
    State(about): State<Arc<About>>,
    Path(client): Path<String>,
    query: Result<Query<AdviceQuery>, QueryRejection>,
) -> JsonReply<Advices> {
    let Query(AdviceQuery { seconds }) = query.map_err(|e| unclear_query(&e))?;
    if !ADVICE_SECONDS.contains(&seconds) {
        let (least, most) = (ADVICE_SECONDS.start(), ADVICE_SECONDS.end());
        let what = format!("seconds={seconds}: a client is watched for {least} to {most} seconds");
        return Err(Refusal::new(RefusalKind::Invalid, what, ""));
    }
    on_thread(move || about.subject.program.advise(&client, seconds)).await
}

async fn users(State(about): State<Arc<About>>) -> JsonReply<crate::users::Users> {
    administer(about, |administration| administration.users()).await
}

async fn user(State(about): State<Arc<About>>, Path(name): Path<String>) -> JsonReply<crate::users::User> {
    administer(about, move |administration| administration.user(&name)).await
}

async fn add_user(State(about): State<Arc<About>>, body: Bytes) -> Result<Response, Refusal> {
    let new: crate::users::NewUser = read(&body)?;
    let concerned = Concerned(new.name.clone());
    let added = administer(about, move |administration| administration.add_user(new)).await?;
    Ok((StatusCode::CREATED, Extension(concerned), added).into_response())
}

async fn change_user(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
    body: Bytes,
) -> JsonReply<crate::users::User> {
    let change = read(&body)?;
    administer(about, move |administration| administration.change_user(&name, change)).await
}

async fn remove_user(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
) -> JsonReply<crate::users::User> {
    administer(about, move |administration| administration.remove_user(&name)).await
}

async fn identity(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
) -> JsonReply<crate::identities::TestedUser> {
    administer(about, move |administration| administration.test_user(&name)).await
}

async fn domain(State(about): State<Arc<About>>) -> JsonReply<crate::domain::Domain> {
    administer(about, |administration| administration.domain()).await
}

async fn tokens(State(about): State<Arc<About>>) -> JsonReply<of_tokens::Tokens> {
    administer(about, |administration| administration.tokens()).await
}

async fn make_token(State(about): State<Arc<About>>, body: Bytes) -> Result<Response, Refusal> {
    let new: of_tokens::NewToken = read(&body)?;
    let concerned = Concerned(new.name.clone());
    let made = administer(about, move |administration| administration.make_token(new)).await?;
    Ok((StatusCode::CREATED, Extension(concerned), made).into_response())
}

async fn remove_token(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
) -> JsonReply<of_tokens::TokenInfo> {
    administer(about, move |administration| administration.remove_token(&name)).await
}

#[cfg(test)]
mod tests;
