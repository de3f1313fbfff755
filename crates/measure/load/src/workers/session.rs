//! A worker: it does what one coordinator says, and removes what it has made, however that ends.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::channel::{Sender, Side, plain, sealed};
use super::message::{Begin, Hello, Order, Report, VERSION};
use super::seal::Token;
use crate::fault::{Fault, Result};
use crate::result::ProblemKind;
use crate::security::Security;
use crate::site::{Access, Site};
use crate::workload::Workload;

/// So often it is looked whether the worker is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Does what the coordinator at the other end of a connection says, until it is done or `ended` becomes true.
///
/// # Errors
/// Who has connected is no coordinator with this token, or is gone; or what was made could not be removed.
pub(super) fn serve_connection(
    stream: TcpStream,
    token: &Token,
    program: &str,
    ended: &AtomicBool,
) -> Result<()> {
    let close = stream.try_clone();
    let (sender, receiver) = sealed(stream, token, Side::Worker)?;
    let served = serve(sender, receiver, program, ended);
    if let Ok(stream) = close {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    served
}

/// The same over standard input and output.
///
/// # Errors
/// The coordinator speaks otherwise, or is gone; or what was made could not be removed.
pub fn serve_standard_streams(program: &str, ended: &AtomicBool) -> Result<()> {
    let (sender, receiver) = plain(io::stdin(), io::stdout());
    serve(sender, receiver, program, ended)
}

fn serve(
    mut sender: Sender,
    mut receiver: super::channel::Receiver,
    program: &str,
    ended: &AtomicBool,
) -> Result<()> {
    sender.send(&Hello { version: VERSION, program: program.to_owned() })?;
    let stop = Arc::new(AtomicBool::new(false));
    let (orders, received) = channel();
    let stopped = Arc::clone(&stop);
    // It ends with the connection, which may be after this function.
    thread::spawn(move || {
        while let Ok(Some(order)) = receiver.receive::<Order>() {
            if matches!(order, Order::Stop) {
                stopped.store(true, Ordering::Relaxed);
            } else if orders.send(order).is_err() {
                return;
            }
        }
        // Nobody is there for whom to go on.
        stopped.store(true, Ordering::Relaxed);
    });
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if ended.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                }
                thread::sleep(LOOK);
            }
        });
        let session = Session {
            sender: RefCell::new(sender),
            orders: received,
            stop: &stop,
            ended,
            is_over: Cell::new(false),
        };
        let served = session.run();
        over.store(true, Ordering::Relaxed);
        served
    })
}

struct Session<'a> {
    sender: RefCell<Sender>,
    orders: Receiver<Order>,
    /// The load under way is to end.
    stop: &'a AtomicBool,
    /// The worker is to end.
    ended: &'a AtomicBool,
    /// The coordinator has said End.
    is_over: Cell<bool>,
}

impl Session<'_> {
    fn run(&self) -> Result<()> {
        let Some(Order::Begin(begin)) = self.next()? else {
            return Err(Fault::new(ProblemKind::Worker, "the coordinator did not begin with Begin"));
        };
        if begin.version != VERSION {
            let text = format!(
                "the coordinator speaks version {} of the messages, this worker {VERSION}",
                begin.version
            );
            self.report(&Report::Failed(Fault::new(ProblemKind::Worker, text.as_str())))?;
            return Err(Fault::new(ProblemKind::Worker, text));
        }
        let Begin { target, addresses, timeout, security, .. } = begin;
        let access = Access { addresses, timeout, security, ..Access::default() };
        let mut site = match Site::make(&target, &access) {
            Ok(site) => site,
            Err(fault) => return self.report(&Report::Failed(fault)),
        };
        let told = self.begun(&site).and_then(|()| self.obey(&mut site));
        let removed = site.remove();
        // It may be that the coordinator is gone.
        let _ = self.report(&Report::Removed(removed.clone().err()));
        told.and(removed)
    }

    fn begun(&self, site: &Site<'_>) -> Result<()> {
        let report = match site.round_trip() {
            Ok((round_trip_us, negotiated)) => {
                Report::Begun { folder: site.name().to_owned(), round_trip_us, negotiated }
            }
            Err(fault) => Report::Failed(fault),
        };
        self.report(&report)
    }

    /// One order after the other, until the last one.
    fn obey(&self, site: &mut Site<'_>) -> Result<()> {
        while !self.is_over.get()
            && let Some(order) = self.next()?
        {
            let done = match order {
                Order::Files { sizes, block } => {
                    site.make_files(&sizes, block, self.stop).map(|()| Report::Done)
                }
                Order::Directories { threads } => {
                    site.make_thread_directories(threads).map(|()| Report::Done)
                }
                Order::Load { workload, security } => self.load(site, &workload, &security),
                // Both may come late, after a load that could not begin.
                Order::Go | Order::Stop => continue,
                Order::Begin(_) => Err(Fault::new(ProblemKind::Worker, "the run has begun already")),
                Order::End => return Ok(()),
            };
            self.report(&done.unwrap_or_else(Report::Failed))?;
        }
        if self.is_over.get() {
            return Ok(());
        }
        Err(Fault::new(ProblemKind::Worker, "the coordinator is gone; what was made is removed"))
    }

    fn load(&self, site: &mut Site<'_>, workload: &Workload, security: &Security) -> Result<Report> {
        let mut wait = || {
            self.report(&Report::Ready)?;
            match self.next()? {
                Some(Order::Go) => self.report(&Report::Started),
                Some(Order::End) => {
                    self.is_over.set(true);
                    Err(Fault::new(ProblemKind::Worker, "the coordinator has ended the run"))
                }
                _ => Err(Fault::new(ProblemKind::Worker, "the coordinator does not say Go")),
            }
        };
        let (measured, negotiated) = site.load_after(workload, security, false, self.stop, &mut wait)?;
        Ok(Report::Loaded { measured, negotiated })
    }

    fn report(&self, report: &Report) -> Result<()> {
        self.sender.borrow_mut().send(report)
    }

    /// The next order; `None` when the connection has ended.
    fn next(&self) -> Result<Option<Order>> {
        loop {
            match self.orders.recv_timeout(LOOK) {
                Ok(order) => return Ok(Some(order)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if self.ended.load(Ordering::Relaxed) => {
                    let fault = Fault::new(ProblemKind::Worker, "the worker was ended");
                    self.report(&Report::Failed(fault.clone()))?;
                    return Err(fault);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
