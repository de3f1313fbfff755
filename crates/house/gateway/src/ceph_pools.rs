//! Data pools of Ceph that give redundancy classes, made with the key of an administrator.

use limits::Media;
pub use rados::Class;
use rados::{Monitors, NewPool, Placement};
use serde::Serialize;

use crate::settings::CephPlace;

type Result<T> = std::result::Result<T, state::Error>;

/// The data pools that there are to be.
#[derive(Debug, Clone)]
pub struct DataPoolsWanted {
    /// The cluster and its file system; its user makes them.
    pub place: CephPlace,
    /// The classes.
    pub classes: Vec<Class>,
    /// On each of these media; empty: on any.
    pub media: Vec<Media>,
    /// Whether nothing is changed.
    pub is_tried: bool,
}

/// What became of one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataPoolMade {
    /// The class.
    pub class: String,
    /// The medium; none: any.
    pub tier: Option<String>,
    /// The data pool.
    pub pool: String,
    /// What the data pool gives; none: it is not made.
    pub gives: Option<String>,
    /// The commands that make it; none: it was there.
    pub commands: Vec<String>,
    /// Whether it was made now.
    pub is_made: bool,
}

/// Makes what is not there. Before anything is made, all of it is checked.
///
/// # Errors
/// The cluster cannot give one of them, its user may not make it, or the monitors do not answer.
pub fn make(wanted: &DataPoolsWanted) -> Result<Vec<DataPoolMade>> {
    let CephPlace { configuration, user, file_system } = &wanted.place;
    let monitors = Monitors::connect(configuration, user)?;
    let look = || monitors.placement(file_system.as_deref());
    let placement = look()?;
    let all = pairs(wanted);
    for (class, media) in &all {
        placement.to_be_made(*class, *media)?;
    }
    let made = all.into_iter().map(|(class, media)| {
        let placement = look()?;
        let Some(new) = placement.to_be_made(class, media)? else {
            return tell(&placement, class, media, None);
        };
        if wanted.is_tried {
            return Ok(tell_tried(class, media, &new));
        }
        monitors.make(&new)?;
        tell(&look()?, class, media, Some(&new))
    });
    made.collect()
}

fn pairs(wanted: &DataPoolsWanted) -> Vec<(Class, Option<Media>)> {
    let media: Vec<_> = match wanted.media.as_slice() {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    wanted.classes.iter().flat_map(|class| media.iter().map(|media| (*class, *media))).collect()
}

fn tell(
    placement: &Placement,
    class: Class,
    media: Option<Media>,
    new: Option<&NewPool>,
) -> Result<DataPoolMade> {
    let fits = |pool: &&rados::DataPool| {
        pool.class() == Some(class) && media.is_none_or(|media| pool.media() == Some(media))
    };
    let mut fitting = placement.pools.iter().filter(fits);
    let found = match new {
        Some(new) => fitting.find(|pool| pool.name == new.name),
        None => fitting.next(),
    };
    let found = found.ok_or_else(|| {
        let name = new.map_or("-", |new| new.name.as_str());
        let what = format!("the data pool {name} was made, and does not give {class}");
        state::Error::new(what, format!("Look what it gives: ceph osd pool get {name} all"))
    })?;
    Ok(DataPoolMade {
        class: class.to_string(),
        tier: media.map(|media| media.to_string()),
        pool: found.name.clone(),
        gives: Some(found.to_string()),
        commands: new.map_or_else(Vec::new, written),
        is_made: new.is_some(),
    })
}

fn tell_tried(class: Class, media: Option<Media>, new: &NewPool) -> DataPoolMade {
    DataPoolMade {
        class: class.to_string(),
        tier: media.map(|media| media.to_string()),
        pool: new.name.clone(),
        gives: None,
        commands: written(new),
        is_made: false,
    }
}

fn written(new: &NewPool) -> Vec<String> {
    new.commands.iter().map(ToString::to_string).collect()
}
