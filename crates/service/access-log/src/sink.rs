//! A sink: its queue, and the thread that writes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::file::FileOutput;
use crate::queue::{Output, Queue, Totals};
use crate::socket::{self, SocketOutput};
use crate::{Event, FileSettings, OpenError, Settings};

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    File(FileSettings),
    Syslog(PathBuf),
    Journal(PathBuf),
}

/// A running sink.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) target: Target,
    queue: Arc<Queue>,
}

impl Target {
    /// What the settings name.
    pub(crate) fn of(settings: &Settings) -> Vec<Self> {
        let Settings { file, syslog, journal, .. } = settings.clone();
        let (file, syslog) = (file.map(Self::File), syslog.map(Self::Syslog));
        file.into_iter().chain(syslog).chain(journal.map(Self::Journal)).collect()
    }

    fn path(&self) -> &PathBuf {
        match self {
            Self::File(FileSettings { path, .. }) | Self::Syslog(path) | Self::Journal(path) => path,
        }
    }

    /// Whether a sink of the one goes on as one of the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.path() == other.path()
    }

    fn open(&self) -> io::Result<Box<dyn Output>> {
        Ok(match self {
            Self::File(settings) => Box::new(FileOutput::open(settings.clone())?),
            Self::Syslog(path) | Self::Journal(path) => Box::new(SocketOutput::open(path.clone())?),
        })
    }
}

impl Sink {
    /// # Errors
    /// The target cannot be opened, or the system has no more threads.
    pub(crate) fn start(target: Target, totals: &Arc<Totals>) -> Result<Self, OpenError> {
        let failed = |error| OpenError { path: target.path().clone(), error };
        let mut output = target.open().map_err(failed)?;
        let queue = Arc::new(Queue::new(Arc::clone(totals)));
        let (served, name) = (Arc::clone(&queue), target.path().display().to_string());
        let serve = move || served.serve(&name, &mut *output);
        std::thread::Builder::new().name("access log".to_owned()).spawn(serve).map_err(failed)?;
        Ok(Self { target, queue })
    }

    /// Has the event written, of which this is the line.
    pub(crate) fn write(&self, event: &Event<'_>, line: &[u8]) {
        self.queue.enter(|dropped| {
            let line = with_dropped(line, dropped);
            match &self.target {
                Target::File(_) => [&line, &b"\n"[..]].concat(),
                Target::Syslog(_) => socket::syslog(event, &line),
                Target::Journal(_) => socket::journal(event, &line),
            }
        });
    }

    /// Has the target opened anew: this one, which is the same as before but for its settings.
    pub(crate) fn reopen(&mut self, target: Target) {
        let file = if let Target::File(settings) = &target { Some(settings.clone()) } else { None };
        self.queue.reopen(file);
        self.target = target;
    }

    /// Ends the sink when its lines are written, or at this time.
    pub(crate) fn end(&self, until: Instant) {
        self.queue.end(until);
    }

    /// Waits until the sink has ended, or this time has come.
    pub(crate) fn wait(&self, until: Instant) {
        self.queue.wait(until);
    }
}

/// The line with one more field, if lines were dropped before it.
fn with_dropped(line: &[u8], dropped: u64) -> Vec<u8> {
    match line.strip_suffix(b"}") {
        Some(open) if dropped > 0 => [open, format!(",\"dropped\":{dropped}}}").as_bytes()].concat(),
        _ => line.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_are_missing_before_it() {
        assert_eq!(with_dropped(b"{\"a\":1}", 0), b"{\"a\":1}");
        assert_eq!(with_dropped(b"{\"a\":1}", 7), b"{\"a\":1,\"dropped\":7}");
    }
}
