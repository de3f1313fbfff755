//! What a listing of the directory must contain.

use std::collections::HashMap;

/// The names that a client has received, page after page.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    times: HashMap<String, u32>,
}

impl Listing {
    /// Notes a name of the listing.
    pub(crate) fn tell(&mut self, name: &str) {
        *self.times.entry(name.to_owned()).or_default() += 1;
    }

    /// Checks names that are known to have been present, or absent, during the whole listing. A name that other clients
    /// make or remove meanwhile may appear or not, and may also appear twice.
    pub(crate) fn check(&self, known: impl IntoIterator<Item = (String, bool)>) -> Result<(), String> {
        known.into_iter().try_for_each(|(name, is_there)| {
            let times = self.times.get(&name).copied().unwrap_or(0);
            if times == u32::from(is_there) {
                return Ok(());
            }
            Err(format!("{name}, there: {is_there}, is listed {times} times"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_listed_once_and_what_is_gone_is_not() {
        let mut listing = Listing::default();
        ["a", "b", "b"].iter().for_each(|name| listing.tell(name));
        let check = |name: &str, is_there| listing.check([(name.to_owned(), is_there)]).is_ok();
        assert_eq!([check("a", true), check("a", false), check("b", true)], [true, false, false]);
        assert_eq!([check("c", true), check("c", false)], [false, true]);
    }
}
