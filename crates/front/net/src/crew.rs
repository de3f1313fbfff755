//! The shards as other threads see them, and what happens to a shard that is held up.
//!
//! A call in which a shard hangs cannot be moved, and the tasks of the shard cannot be taken out of it. So a shard that
//! does not return is given up: a new shard takes over its listeners and tasks, and its connections are shut down from
//! outside. The clients connect again and find the state that outlives a connection. If the call ends after all, the
//! old shard notices that it has to end.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::pin::pin;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::give_back::{Freed, trim_shard};
use crate::stop::{Present, Stop, Stopping};
use crate::{Pulse, Term};

/// Threads per shard for calls that may block.
const BLOCKING_THREADS: usize = 32;
/// A shard that has slept in one call for this long is given up.
const HELD_UP: Duration = Duration::from_secs(1);
/// How many shards that were given up may still hang. Beyond that, shards that are held up are left alone.
const LEFT_MAX: usize = 32;
/// How long the shards may take to clean up at the end. Without this limit, a wait for a storage that does not answer
/// would never end.
const CLEAN_UP: Duration = Duration::from_secs(20);

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Makes the job that starts something on a shard. The job ends when the shard is told to end.
pub(crate) type Start = Box<dyn Fn(Stop) -> io::Result<Job> + Send + Sync>;

/// Which listeners and tasks end together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Group(u64);

/// A connection as its shard holds it.
#[derive(Debug)]
enum Socket {
    /// It was dealt to the shard, which has not taken it up yet.
    Dealt(std::net::TcpStream),
    /// The shard serves it.
    Served(Weak<TcpStream>),
}

/// The connections of a shard, so that they can be shut down from outside.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    next: AtomicU64,
    /// Guards the list.
    open: Mutex<HashMap<u64, Socket>>,
}

/// A connection is open as long as this lives.
#[derive(Debug)]
pub(crate) struct OpenSocket {
    sockets: Arc<Sockets>,
    number: u64,
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.sockets.open.lock().remove(&self.number);
    }
}

impl OpenSocket {
    /// Takes up the connection on the runtime of its shard. `NotConnected` if it was shut down before.
    pub(crate) fn take_up(&self) -> io::Result<Arc<TcpStream>> {
        let mut open = self.sockets.open.lock();
        let Some(Socket::Dealt(stream)) = open.remove(&self.number) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let stream = Arc::new(TcpStream::from_std(stream)?);
        open.insert(self.number, Socket::Served(Arc::downgrade(&stream)));
        Ok(stream)
    }
}

impl Sockets {
    /// Enters a connection that is dealt to the shard, in non-blocking mode.
    pub(crate) fn enter(self: &Arc<Self>, stream: std::net::TcpStream) -> OpenSocket {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, Socket::Dealt(stream));
        OpenSocket { sockets: Arc::clone(self), number }
    }

    /// Ends all connections, also those that the shard has not taken up.
    fn shut_down(&self) {
        for (_, socket) in self.open.lock().drain() {
            // The peer may have ended the connection first.
            let _ = match socket {
                Socket::Dealt(stream) => stream.shutdown(Shutdown::Both),
                Socket::Served(stream) => {
                    stream.upgrade().map_or(Ok(()), |stream| SockRef::from(&*stream).shutdown(Shutdown::Both))
                }
            };
        }
    }
}

/// What a job needs to know about its shard.
#[derive(Debug)]
pub(crate) struct OnShard {
    /// The number of the shard.
    pub(crate) shard: usize,
    /// Given when the shard or the group of the job is to end.
    pub(crate) stop: Stop,
    pub(crate) sockets: Arc<Sockets>,
}

/// A shard as other threads see it.
#[derive(Debug)]
struct Post {
    jobs: mpsc::UnboundedSender<Job>,
    stop: watch::Sender<bool>,
    /// The groups that have not ended.
    groups: HashMap<Group, Stopping>,
    sockets: Arc<Sockets>,
    /// The kernel's id of the shard's thread; 0 before the thread runs.
    id: Arc<AtomicI32>,
    thread: JoinHandle<()>,
}

impl Post {
    fn start(shard: usize, pulse: &Pulse, freed: &Freed) -> io::Result<Self> {
        let (sender, jobs) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .build()?;
        let stop = watch::Sender::new(false);
        let kept = pulse.clone().keep(shard, stop.subscribe());
        let (stopped, freed, id) = (stop.subscribe(), freed.clone(), Arc::<AtomicI32>::default());
        let own_id = Arc::clone(&id);
        let thread = std::thread::Builder::new().name(format!("shard-{shard}")).spawn(move || {
            own_id.store(nix::unistd::gettid().as_raw(), Ordering::Release);
            run_shard(&runtime, jobs, freed, stopped, kept);
        })?;
        let groups = HashMap::new();
        Ok(Self { jobs: sender, stop, groups, sockets: Arc::default(), id, thread })
    }

    /// Tells the shard and all groups there to end.
    fn stop(&self) {
        self.groups.values().for_each(Stopping::stop);
        self.stop.send_replace(true);
    }
}

/// A job that is started again where its shard is replaced.
struct Started {
    group: Group,
    shard: usize,
    start: Start,
}

/// All shards. Who needs both `starts` and `posts` locks `starts` first.
pub(crate) struct Crew {
    /// Guards the shards, by their numbers.
    posts: Mutex<Vec<Post>>,
    /// Guards the jobs that run on a shard and are started again on the shard that replaces it.
    starts: Mutex<Vec<Started>>,
    next_group: AtomicU64,
    /// Guards the threads of shards that were given up.
    left: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) pulse: Pulse,
    freed: Freed,
}

impl std::fmt::Debug for Crew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crew").field("shards", &self.posts.lock().len()).finish_non_exhaustive()
    }
}

impl Crew {
    pub(crate) fn start(count: usize, freed: Freed) -> io::Result<Arc<Self>> {
        let pulse = Pulse::new(count);
        let posts: io::Result<Vec<Post>> =
            (0..count).map(|shard| Post::start(shard, &pulse, &freed)).collect();
        let (posts, starts, left) = (Mutex::new(posts?), Mutex::default(), Mutex::default());
        let next_group = AtomicU64::default();
        Ok(Arc::new(Self { posts, starts, next_group, left, pulse, freed }))
    }

    /// Begins a group, which has nothing in it yet. `term`: until when its clients may be answered.
    pub(crate) fn open_group(&self, term: Option<Term>) -> (Group, Present) {
        let group = Group(self.next_group.fetch_add(1, Ordering::Relaxed));
        let present = Present::default();
        for post in self.posts.lock().iter_mut() {
            post.groups.insert(group, Stopping::new(present.clone(), term.clone()));
        }
        (group, present)
    }

    /// Tells all of a group to end. Nothing of it begins any more.
    pub(crate) fn end_group(&self, group: Group) {
        let mut starts = self.starts.lock();
        starts.retain(|started| started.group != group);
        for post in self.posts.lock().iter_mut() {
            drop(post.groups.remove(&group));
        }
    }

    /// How many shards there are.
    #[cfg(feature = "quic")]
    pub(crate) fn count(&self) -> usize {
        self.posts.lock().len()
    }

    /// Starts something of this group on this shard.
    pub(crate) fn begin(&self, group: Group, shard: usize, start: Start) -> io::Result<()> {
        {
            let posts = self.posts.lock();
            let post = posts.get(shard).ok_or(io::ErrorKind::NotConnected)?;
            let stopping = post.groups.get(&group).ok_or(io::ErrorKind::NotConnected)?;
            let job = start(stopping.signal())?;
            post.jobs.send(job).map_err(|_| io::ErrorKind::NotConnected)?;
        }
        self.starts.lock().push(Started { group, shard, start });
        Ok(())
    }

    /// Gives a job of this group to a shard; the shards take turns. A group that has ended gives none.
    pub(crate) fn deal(&self, group: Group, turn: usize, job: impl FnOnce(OnShard) -> Option<Job>) {
        let posts = self.posts.lock();
        let shard = turn.checked_rem(posts.len()).unwrap_or(0);
        let Some(post) = posts.get(shard) else { return };
        let Some(stopping) = post.groups.get(&group) else { return };
        let on_shard = OnShard { shard, stop: stopping.signal(), sockets: Arc::clone(&post.sockets) };
        if let Some(job) = job(on_shard) {
            let _ = post.jobs.send(job); // the shard may have ended
        }
    }

    /// Replaces this shard with a new one.
    fn give_up(&self, shard: usize) -> io::Result<()> {
        {
            let mut left = self.left.lock();
            left.retain(|thread| !thread.is_finished());
            if left.len() >= LEFT_MAX {
                return Err(io::Error::other(format!("{LEFT_MAX} were given up already")));
            }
        }
        let mut new = Post::start(shard, &self.pulse, &self.freed)?;
        self.pulse.beat(shard, Instant::now());
        let old = {
            let starts = self.starts.lock();
            let mut posts = self.posts.lock();
            let post = posts.get_mut(shard).ok_or(io::ErrorKind::NotFound)?;
            let again = |(group, old): (&Group, &Stopping)| (*group, old.again());
            new.groups = post.groups.iter().map(again).collect();
            let own = starts.iter().filter(|started| started.shard == shard);
            let own = own.filter_map(|started| Some((new.groups.get(&started.group)?, started)));
            let jobs: Vec<Job> = own
                .map(|(stopping, started)| (started.start)(stopping.signal()))
                .collect::<io::Result<_>>()?;
            let old = std::mem::replace(post, new);
            // Only now: a listener that accepts deals its connections to the shards that it finds.
            for job in jobs {
                let _ = post.jobs.send(job); // the shard has just started
            }
            old
        };
        old.stop();
        old.sockets.shut_down();
        self.left.lock().push(old.thread);
        Ok(())
    }

    /// Ends all shards, and waits until they have cleaned up.
    pub(crate) fn end(&self) {
        self.starts.lock().clear();
        let posts = std::mem::take(&mut *self.posts.lock());
        posts.iter().for_each(Post::stop);
        let threads = posts.into_iter().map(|post| post.thread);
        let deadline = Instant::now() + CLEAN_UP;
        for thread in threads.chain(std::mem::take(&mut *self.left.lock())) {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if !thread.is_finished() {
                tracing::error!("a shard is held up: it is left behind, with what it had to clean up");
            } else if thread.join().is_err() {
                tracing::error!("a shard ended with a panic");
            }
        }
    }
}

/// Runs the jobs of a shard until the signal to stop, then until every connection has cleaned up.
fn run_shard(
    runtime: &tokio::runtime::Runtime,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    freed: Freed,
    mut stop: watch::Receiver<bool>,
    pulse: impl Future<Output = ()> + 'static,
) {
    let local = LocalSet::new();
    local.spawn_local(pulse);
    local.block_on(runtime, async {
        let mut trimming = pin!(trim_shard(freed));
        loop {
            tokio::select! {
                Some(job) = jobs.recv() => job(),
                never = &mut trimming => match never {},
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        jobs.close();
    });
    runtime.block_on(local);
}

/// Watches for shards that are held up. [`Keeper::look`] is to be called ten times a second.
#[derive(Debug)]
pub struct Keeper {
    crew: Weak<Crew>,
    /// For each shard that is held up, how often its thread had gone to sleep at the last look.
    slept: HashMap<usize, u64>,
}

impl Keeper {
    pub(crate) fn new(crew: &Arc<Crew>) -> Self {
        Self { crew: Arc::downgrade(crew), slept: HashMap::new() }
    }

    /// Gives up the shards that have slept in one call for more than a second, and returns their numbers. `waits`
    /// returns how often a sleeping thread has gone to sleep so far. A thread that is only busy, or waits for the
    /// processor, is left alone.
    pub fn look(&mut self, now: Instant, waits: impl Fn(i32) -> Option<u64>) -> Vec<usize> {
        let Some(crew) = self.crew.upgrade() else { return Vec::new() };
        let ids: Vec<i32> = crew.posts.lock().iter().map(|post| post.id.load(Ordering::Acquire)).collect();
        let held_up =
            ids.into_iter().enumerate().filter(|(shard, _)| crew.pulse.silent(*shard, now) > HELD_UP);
        let slept: HashMap<usize, u64> =
            held_up.filter_map(|(shard, id)| Some((shard, waits(id)?))).collect();
        let sleeps_on =
            |(shard, count): (&usize, &u64)| (self.slept.get(shard) == Some(count)).then_some(*shard);
        let mut lost: Vec<usize> = slept.iter().filter_map(sleeps_on).collect();
        self.slept = slept;
        lost.retain(|shard| match crew.give_up(*shard) {
            Ok(()) => {
                tracing::error!(
                    shard,
                    "a storage holds up a shard: it is given up, and its clients connect again"
                );
                true
            }
            Err(e) => {
                tracing::error!(
                    shard,
                    "a storage holds up a shard, and there is none to take its place: {e}"
                );
                false
            }
        });
        lost
    }
}
