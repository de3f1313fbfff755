//! Shares whose names are the same, or whose directories overlap: the server refuses them, because two sets of rules would apply to
//! one file.

use gateway::settings::same_share_name;

use super::Share;

/// The parts of a path, without those that change nothing, and without the one that stands for a user: a share of homes is all of
/// the directory.
fn parts(path: &str) -> Vec<&str> {
    let path = path.strip_suffix("/{user}").unwrap_or(path);
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

/// Writes shares as comments until no two directories overlap. Of two shares of one directory the first remains; a directory that
/// contains another one gives way, because its rules may be the weaker ones for what is in the other.
pub(super) fn close(shares: &mut [Share]) {
    let mut names: Vec<String> = Vec::new();
    for share in shares.iter_mut().filter(|share| share.closed.is_empty()) {
        if names.iter().any(|name| same_share_name(name, &share.name)) {
            share.close("another share has this name");
        } else {
            names.push(share.name.clone());
        }
    }
    let known: Vec<(usize, String, String)> = shares
        .iter()
        .enumerate()
        .filter(|(_, share)| share.closed.is_empty())
        .map(|(index, share)| (index, share.name.clone(), share.directory.clone()))
        .collect();
    for (index, share) in shares.iter_mut().enumerate().filter(|(_, share)| share.closed.is_empty()) {
        let own = parts(&share.directory);
        let in_the_way = known.iter().filter(|(other, ..)| *other != index).find(|(other, _, directory)| {
            let theirs = parts(directory);
            if theirs.len() == own.len() { *other < index && theirs == own } else { theirs.starts_with(&own) }
        });
        let Some((_, name, directory)) = in_the_way else { continue };
        let why = if parts(directory) == own {
            format!("the share {name} has the same directory, and directories of shares must not overlap")
        } else {
            format!("the share {name} is inside, in {directory}, and directories of shares must not overlap")
        };
        share.close(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_shares_that_overlap_remains() {
        let closed = |directories: &[&str]| {
            let share = |(number, directory): (usize, &&str)| Share {
                name: number.to_string(),
                directory: (*directory).to_owned(),
                ..Share::default()
            };
            let mut shares: Vec<Share> = directories.iter().enumerate().map(share).collect();
            close(&mut shares);
            shares.iter().map(|share| !share.closed.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(closed(&["/a", "/b"]), [false, false]);
        assert_eq!(closed(&["/a", "/a/", "//a/."]), [false, true, true]);
        assert_eq!(closed(&["/a", "/a/b", "/ab"]), [true, false, false]);
        assert_eq!(closed(&["/a/b", "/a", "/"]), [false, true, true]);
        assert_eq!(closed(&["/a/{user}", "/a"]), [false, true]);
        assert_eq!(closed(&["/a/{user}", "/a/b"]), [true, false]);
    }

    #[test]
    fn one_of_two_shares_with_a_name_remains() {
        let share = |name: &str, directory: &str| Share {
            name: name.to_owned(),
            directory: directory.to_owned(),
            ..Share::default()
        };
        let mut shares = [share("a", "/a"), share("A", "/b")];
        close(&mut shares);
        assert_eq!(shares.map(|share| share.closed.len()), [0, 1]);
    }
}
