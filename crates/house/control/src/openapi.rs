//! The description of the API, OpenAPI 3.1. Tests compare it with the routes and the types.
//!
//! Each area of the API has a file, which holds its part of the document: its paths and its schemas. `document.json` has
//! what belongs to all areas.

use serde_json::Value;

/// The part that the others are added to.
const DOCUMENT: &str = include_str!("openapi/document.json");

/// The part of each area, with its name.
const AREAS: [(&str, &str); 11] = [
    ("activity", include_str!("openapi/activity.json")),
    ("clients", include_str!("openapi/clients.json")),
    ("configuration", include_str!("openapi/configuration.json")),
    ("files", include_str!("openapi/files.json")),
    ("program", include_str!("openapi/program.json")),
    ("shares", include_str!("openapi/shares.json")),
    ("sign-in", include_str!("openapi/sign_in.json")),
    ("status", include_str!("openapi/status.json")),
    ("tokens", include_str!("openapi/tokens.json")),
    ("traces", include_str!("openapi/traces.json")),
    ("users", include_str!("openapi/users.json")),
];

/// The whole document.
///
/// # Errors
/// A part is not JSON, which a test excludes.
pub(crate) fn document() -> serde_json::Result<Value> {
    let mut whole = serde_json::from_str(DOCUMENT)?;
    for (_, part) in AREAS {
        add(&mut whole, serde_json::from_str(part)?);
    }
    Ok(whole)
}

/// Adds the keys of a part at every depth. What is there already stays, except objects, which grow.
fn add(whole: &mut Value, part: Value) {
    let (Value::Object(whole), Value::Object(part)) = (whole, part) else { return };
    for (key, value) in part {
        match whole.get_mut(&key) {
            Some(present) => add(present, value),
            None => {
                whole.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keys(value: &Value) -> impl Iterator<Item = &String> {
        value.as_object().unwrap().keys()
    }

    #[test]
    fn every_key_of_every_part_is_in_the_document_once() {
        let whole = document().unwrap();
        let (mut paths, mut schemas) = (BTreeSet::new(), BTreeSet::new());
        for (name, text) in AREAS.into_iter().chain([("document", DOCUMENT)]) {
            let part: Value = serde_json::from_str(text).unwrap();
            for path in keys(&part["paths"]) {
                assert!(paths.insert(path.clone()), "{name}: {path} is in two parts");
                assert_eq!(part["paths"][path], whole["paths"][path], "{name}");
            }
            for schema in keys(&part["components"]["schemas"]) {
                assert!(schemas.insert(schema.clone()), "{name}: {schema} is in two parts");
                assert_eq!(
                    part["components"]["schemas"][schema], whole["components"]["schemas"][schema],
                    "{name}"
                );
            }
        }
        assert_eq!(paths, keys(&whole["paths"]).cloned().collect());
        assert_eq!(schemas, keys(&whole["components"]["schemas"]).cloned().collect());
    }

    #[test]
    fn what_is_referred_to_is_there() {
        let whole = document().unwrap();
        let text = whole.to_string();
        let names = text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
        let names: BTreeSet<_> = names.collect();
        assert!(names.len() > 30, "{names:?}");
        for name in names {
            assert!(whole.pointer(name).is_some(), "{name}");
        }
    }
}
