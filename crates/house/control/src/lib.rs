//! The control address: health, metrics, the API and the web console over HTTP.
//!
//! It runs on a thread and a runtime of its own, so that a slow reader of metrics never holds up a shard. Health and
//! metrics need no password, so the address is bound to loopback unless configured otherwise. The API, and metrics that
//! name clients, need a token, which only users who may read the server's state directory have.

pub mod activity;
mod administration;
mod administrators;
mod api;
mod authorization;
pub mod clients;
pub mod cluster;
mod cluster_calls;
mod complaints;
pub mod configuration;
mod connections;
mod console;
mod contents;
mod cookie;
mod counters;
mod deleted_share_calls;
pub mod deleted_shares;
pub mod domain;
pub mod explain;
pub mod files;
pub mod findings;
mod health;
mod host;
pub mod identities;
mod logged;
mod metrics;
mod openapi;
pub mod policies;
mod policy_calls;
mod pool_calls;
pub mod pools;
pub mod program;
mod quota_calls;
pub mod quotas;
pub mod ransomware;
mod ransomware_calls;
pub mod redundancy;
mod replication_calls;
pub mod replications;
pub mod report;
mod restore_calls;
pub mod restores;
mod served;
mod server;
pub mod shares;
pub mod sign_in;
mod sign_ins;
pub mod simulation;
mod snapshot_calls;
pub mod snapshots;
pub mod status;
mod token;
pub mod tokens;
pub mod trace;
pub mod trace_file;
pub mod users;
mod vserver_share_calls;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use rustls::ServerConfig;
use share::{AccessLog, ShareTable};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

pub use administration::{Administration, Refusal, RefusalKind};
pub use administrators::{Administrator, Administrators};
pub use api::ApiError;
pub use counters::{ContextCounts, Counters, LookupCounts, MechanismLogons, Occupied};
pub use health::{Concerns, Health, SNAPSHOTS_ALARM, StuckShard, alarms, certificate_warning, health};
pub use served::{ServedShares, ServedVserver};
pub use token::{Digest, Token};

use clients::Clients;
use complaints::Complaints;
use connections::ControlLimits;
use cookie::Transport;
use files::Holdings;
use host::Hosts;
use metrics::{Audience, Connected, OfServer};
use program::Program;
use server::Peer;
use sign_in::Throttle;
use sign_ins::SignIns;
use tokens::KnownTokens;

/// How many answers of `/healthz` are worked on at a time, and how many of `/metrics`.
const ANSWERS_MAX: usize = 4;
/// How long a request waits for others that are answered.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// The answer after that.
const ANSWERS_LATE: &str =
    "stuck\nother requests wait for an answer already: the state database or a share answers late\n";

/// The running control server. Dropping it ends the server.
#[derive(Debug)]
pub struct Control {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the control address reports on.
pub struct Subject {
    /// The shares of the server itself, for the metrics.
    pub shares: Arc<ShareTable>,
    /// The vservers that are served now, by name.
    pub vservers: Box<dyn Fn() -> Vec<ServedVserver> + Send + Sync>,
    /// Carries out what the API asks for.
    pub administration: Arc<dyn Administration>,
    /// What the clients hold in the shares.
    pub holdings: Arc<dyn Holdings>,
    /// The program around the server.
    pub program: Arc<dyn Program>,
    /// The clients that are connected now, with those of vservers.
    pub clients: Box<dyn Fn() -> Clients + Send + Sync>,
    /// Counters other than the calls of shares, for the metrics.
    pub counters: Box<dyn Fn() -> Counters + Send + Sync>,
    /// The questions to those who are asked for users and groups.
    pub lookups: Box<dyn Fn() -> Vec<LookupCounts> + Send + Sync>,
    /// The connections of each protocol.
    pub occupied: Box<dyn Fn() -> Vec<Occupied> + Send + Sync>,
    /// The shards that are held up.
    pub stuck_shards: Box<dyn Fn() -> Vec<StuckShard> + Send + Sync>,
    /// Whether NFS programs that are to be registered with rpcbind are not.
    pub is_unregistered: Arc<AtomicBool>,
    /// The tokens that callers of the API present.
    pub tokens: Arc<KnownTokens>,
    /// The administrators, who show the passwords of their accounts.
    pub administrators: Arc<dyn Administrators>,
    /// Names and addresses under which the control address answers, in addition to loopback and the address to which
    /// the connection was made.
    pub names: Vec<String>,
    /// The TLS configuration with the certificate. If it is given, only TLS is served.
    pub tls: Option<Arc<ServerConfig>>,
    /// When the present certificate expires; None: it is not known.
    pub certificate_expires: Box<dyn Fn() -> Option<SystemTime> + Send + Sync>,
    /// The access log, for what the API has done.
    pub access_log: AccessLog,
}

impl Subject {
    /// All shares that are served now.
    pub(crate) fn served(&self) -> ServedShares {
        ServedShares { own: self.shares.present(), vservers: (self.vservers)() }
    }

    /// What matters now beside shards and shares. This waits for the state database.
    pub(crate) fn concerns(&self) -> Concerns {
        let concerns =
            Concerns::now(&self.administration.reloads(), (self.certificate_expires)(), SystemTime::now());
        let concerns = concerns.with_snapshots(&self.administration.snapshot_figures());
        let concerns = concerns.with_replicas(self.administration.replication_figures(), SystemTime::now());
        Concerns { is_unregistered: self.is_unregistered.load(Ordering::Relaxed), ..concerns }
    }
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").field("shares", &self.shares.present().len()).finish_non_exhaustive()
    }
}

impl Control {
    /// Serves `GET /healthz`, `GET /metrics`, the console, and, for callers with a token, the API below `/v1` on `listener`.
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub fn start(listener: TcpListener, subject: Subject) -> io::Result<Self> {
        Self::start_within(ControlLimits::default(), listener, subject)
    }

    fn start_within(limits: ControlLimits, listener: TcpListener, mut subject: Subject) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let tls = subject.tls.take().map(TlsAcceptor::from);
        let transport = if tls.is_some() { Transport::Tls } else { Transport::Plain };
        let about = Arc::new(About::new(subject, transport));
        let routes = router(&about);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    never = server::serve(listener, tls, routes, limits) => match never {},
                    () = about.complaints.tell_overdue() => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the control thread ended with a panic");
        }
    }
}

struct About {
    subject: Subject,
    started: Instant,
    transport: Transport,
    hosts: Hosts,
    sign_ins: SignIns,
    throttle: Throttle,
    complaints: Complaints,
    /// The answers that need no token.
    health_answers: Arc<Semaphore>,
    metrics_answers: Arc<Semaphore>,
}

impl About {
    fn new(mut subject: Subject, transport: Transport) -> Self {
        Self {
            hosts: Hosts::new(std::mem::take(&mut subject.names)),
            subject,
            started: Instant::now(),
            transport,
            sign_ins: SignIns::default(),
            throttle: Throttle::default(),
            complaints: Complaints::default(),
            health_answers: Arc::new(Semaphore::new(ANSWERS_MAX)),
            metrics_answers: Arc::new(Semaphore::new(ANSWERS_MAX)),
        }
    }
}

fn router(about: &Arc<About>) -> Router {
    Router::new()
        .route("/healthz", get(tell_health))
        .route("/metrics", get(write_metrics))
        .nest("/v1", api::router(about))
        .merge(console::router())
        .with_state(Arc::clone(about))
        .layer(middleware::from_fn_with_state(Arc::clone(about), host::check))
        .layer(middleware::from_fn(console::harden))
}

/// Answers on a thread that may wait for the state database. The thread of the connections is free meanwhile. Whoever asks needs no
/// token, and may go away before the answer: as long as too many threads wait, others wait for a moment and are refused.
async fn answer_on_thread<T: IntoResponse + Send + 'static>(
    answering: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Response {
    let turn = tokio::time::timeout(ANSWER_PATIENCE, Arc::clone(answering).acquire_owned()).await;
    let Ok(Ok(permit)) = turn else {
        return (StatusCode::SERVICE_UNAVAILABLE, ANSWERS_LATE).into_response();
    };
    let work = move || {
        let _permit = permit;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response(), IntoResponse::into_response)
}

async fn tell_health(State(about): State<Arc<About>>) -> Response {
    let answering = Arc::clone(&about.health_answers);
    answer_on_thread(&answering, move || {
        let subject = &about.subject;
        // They may wait for the state database; the shares of vservers are held for a moment only.
        let concerns = subject.concerns();
        health(&(subject.stuck_shards)(), &subject.served(), concerns).response()
    })
    .await
}

/// Metrics name clients only to callers with a token.
async fn write_metrics(
    State(about): State<Arc<About>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let audience = match headers.get(AUTHORIZATION) {
        None => Audience::Everybody,
        Some(shown) => match authorization::caller(&about, peer, shown.as_bytes()).await {
            Ok(bearer) if !bearer.scope.allows(tokens::Scope::Read) => {
                return authorization::forbidden(&bearer, tokens::Scope::Read);
            }
            Ok(_) => Audience::Administrators,
            Err(why) => return authorization::refusal(why),
        },
    };
    let answering = Arc::clone(&about.metrics_answers);
    answer_on_thread(&answering, move || metrics_for(&about, audience)).await
}

/// The metrics, and what they are.
fn metrics_for(about: &About, audience: Audience) -> impl IntoResponse + use<> {
    let server = OfServer {
        counters: (about.subject.counters)(),
        connected: Connected::from(&(about.subject.clients)()),
        lookups: (about.subject.lookups)(),
        occupied: (about.subject.occupied)(),
        shards_stuck: (about.subject.stuck_shards)().len(),
        reload: about.subject.administration.reloads(),
        snapshots: about.subject.administration.snapshot_figures(),
        pools: about.subject.administration.pool_figures(),
        gateway: about.subject.administration.cluster_gateways().ok().map(|gateway| gateway.figures()),
        replications: about.subject.administration.replication_figures().unwrap_or_default(),
        certificate_expires: (about.subject.certificate_expires)(),
        up: about.started.elapsed(),
    };
    let text = metrics::render(&about.subject.served(), &server, audience);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

#[cfg(test)]
pub(crate) mod tests;
