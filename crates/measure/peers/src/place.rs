//! Where the files of servers are, and what is measured there.

use std::path::{Path, PathBuf};

use load::plan::Family;
use load::target::Target;
use load::{Access, Server, ServerProcess};

/// Where a server's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// In memory: what is measured is the server.
    Memory,
    /// On a disk, for what is read past the caches.
    Disk,
    /// In memory, and the share has a plan.
    Provisioned,
}

impl Medium {
    /// The place that a family is measured in.
    #[must_use]
    pub fn of_family(family: &Family) -> Self {
        match family.name {
            "cache-out" => Self::Disk,
            "limits" => Self::Provisioned,
            _ => Self::Memory,
        }
    }

    /// The share's name.
    #[must_use]
    pub fn share(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Provisioned => "provisioned",
        }
    }

    /// The place of others than Anabranch: they have no plans. What they let through says what this machine could do.
    #[must_use]
    pub fn peers(self) -> Self {
        if self == Self::Provisioned { Self::Memory } else { self }
    }
}

/// The directories of one server.
#[derive(Debug, Clone)]
pub struct Shares {
    /// That of [`Medium::Memory`].
    pub memory: PathBuf,
    /// That of [`Medium::Disk`].
    pub disk: PathBuf,
    /// That of [`Medium::Provisioned`].
    pub provisioned: PathBuf,
}

impl Shares {
    /// The directory of a place.
    #[must_use]
    pub fn of(&self, place: Medium) -> &Path {
        match place {
            Medium::Memory => &self.memory,
            Medium::Disk => &self.disk,
            Medium::Provisioned => &self.provisioned,
        }
    }

    /// The directories of all places.
    pub fn all(&self) -> impl Iterator<Item = (Medium, &Path)> {
        [Medium::Memory, Medium::Disk, Medium::Provisioned].into_iter().map(|place| (place, self.of(place)))
    }

    /// Those of a server that has no plans.
    pub fn peers(&self) -> impl Iterator<Item = (Medium, &Path)> {
        self.all().filter(|(place, _)| *place == place.peers())
    }
}

/// A server that is measured over a protocol.
#[derive(Debug)]
pub struct Contender {
    /// Its short name.
    pub server: &'static str,
    /// What load is made on.
    pub target: Target,
    /// How it is spoken to.
    pub access: Access,
}

impl Contender {
    /// A server by its short name and its full one, with its process and the directory behind the target.
    #[must_use]
    pub fn new(
        server: &'static str,
        name: &str,
        target: Target,
        process: ServerProcess,
        directory: &Path,
    ) -> Self {
        let known = Server {
            name: Some(name.to_owned()),
            process: Some(process),
            directory: Some(directory.to_owned()),
            ..Server::default()
        };
        Self { server, target, access: Access { server: known, ..Access::default() } }
    }
}
