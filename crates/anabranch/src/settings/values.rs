//! The values that are given, by their keys.

use std::path::{Path, PathBuf};

use serde::Serializer;
use serde_json::{Map, Value};

use super::Given;

impl Given {
    /// The values that are given at the top of a file, or by flags; not the shares and the users.
    pub(crate) fn values(&self) -> Map<String, Value> {
        let mut values = match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            _ => Map::new(), // a struct becomes an object
        };
        let is_given =
            |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
        values.retain(|_, value| is_given(value));
        values
    }

    /// The keys of these values.
    pub(super) fn keys_given(&self) -> Vec<String> {
        self.values().into_iter().map(|(key, _)| key).collect()
    }
}

/// A path as text, even if it is not UTF-8.
pub(super) fn path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path.as_deref().map(Path::to_string_lossy) {
        Some(text) => to.serialize_some(&text),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_given_has_the_form_of_the_file() {
        let given = Given {
            share: vec!["data=/srv".parse().unwrap()],
            user: vec!["anna:hush-hush".parse().unwrap()],
            smb: vec!["[::]:445".parse().unwrap()],
            nfs: vec!["off".parse().unwrap()],
            smb_interface: vec!["10.0.0.1;rss;speed=100".parse().unwrap()],
            password_file: vec!["otto=/x".parse().unwrap(), "zoe=-".parse().unwrap()],
            state: Some("/var".into()),
            max_channels: Some(3),
            ..Given::default()
        };
        let expected = json!({
            "smb": ["[::]:445"],
            "nfs": ["off"],
            "smb-interface": ["10.0.0.1;speed=100;rss"],
            "password-file": ["otto=/x", "zoe=-"],
            "state": "/var",
            "max-channels": 3,
        });
        assert_eq!(Value::Object(given.values()), expected);
    }
}
