//! The description of the API, OpenAPI 3.1. Tests compare it with the routes and the types.
//!
//! Each area of the API has a file, which holds its part of the document: its paths and its schemas. `document.json` has
//! what belongs to all areas.

use serde_json::Value;

/// The part that the others are added to.
const DOCUMENT: &str = include_str!("openapi/document.json");

/// The part of each area, with its name.
const AREAS: [(&str, &str); 19] = [
    ("activity", include_str!("openapi/activity.json")),
    ("clients", include_str!("openapi/clients.json")),
    ("cluster", include_str!("openapi/cluster.json")),
    ("configuration", include_str!("openapi/configuration.json")),
    ("domain", include_str!("openapi/domain.json")),
    ("files", include_str!("openapi/files.json")),
    ("identities", include_str!("openapi/identities.json")),
    ("pools", include_str!("openapi/pools.json")),
    ("program", include_str!("openapi/program.json")),
    ("quotas", include_str!("openapi/quotas.json")),
    ("ransomware", include_str!("openapi/ransomware.json")),
    ("replications", include_str!("openapi/replications.json")),
    ("shares", include_str!("openapi/shares.json")),
    ("sign-in", include_str!("openapi/sign_in.json")),
    ("snapshots", include_str!("openapi/snapshots.json")),
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

    /// The description of the last release, without its texts. A release replaces it.
    const RELEASED: &str = include_str!("../testdata/openapi-0.1.json");

    /// A document without its texts, and with parameters and responses in the places that refer to them.
    fn plain(value: &Value, whole: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let referred =
                    fields.get("$ref").and_then(Value::as_str).filter(|name| !name.contains("/schemas/"));
                if let Some(name) = referred {
                    return plain(whole.pointer(name.trim_start_matches('#')).unwrap(), whole);
                }
                let says_nothing = |(key, value): &(&String, &Value)| match key.as_str() {
                    "description" | "summary" => value.is_string(),
                    "required" => **value == false,
                    _ => false,
                };
                let kept = fields.iter().filter(|field| !says_nothing(field));
                Value::Object(kept.map(|(key, value)| (key.clone(), plain(value, whole))).collect())
            }
            Value::Array(entries) => entries.iter().map(|entry| plain(entry, whole)).collect(),
            other => other.clone(),
        }
    }

    /// What of the last release is no longer there, or asks for more. `path` is where `released` is.
    fn broken(released: &Value, present: &Value, path: &str, broken_at: &mut Vec<String>) {
        let is_sent = path.split('/').any(|part| part.starts_with("New") || part.ends_with("Change"));
        match (released, present) {
            (Value::Object(released), Value::Object(present)) => {
                for (key, value) in released {
                    broken(
                        value,
                        present.get(key).unwrap_or(&Value::Null),
                        &format!("{path}/{key}"),
                        broken_at,
                    );
                }
                let asks_for_more =
                    is_sent && present.contains_key("required") && !released.contains_key("required");
                broken_at.extend(asks_for_more.then(|| format!("{path}/required")));
            }
            // Answers may have more fields, kinds and values, and calls more parameters. Of requests, no more may be asked.
            (Value::Array(released), Value::Array(present)) => {
                let is_asked = path.ends_with("/required") && is_sent;
                let mut lost = released.iter().filter(|entry| !present.contains(entry));
                let mut more = present.iter().filter(|entry| !released.contains(entry));
                let asks_for_more = match is_asked {
                    true => more.next().is_some(),
                    false => more.any(|entry| entry["required"] == true),
                };
                if asks_for_more || (!is_asked && lost.next().is_some()) {
                    broken_at.push(path.to_owned());
                }
            }
            _ if released == present => {}
            _ => broken_at.push(path.to_owned()),
        }
    }

    fn broken_since_release(present: &Value) -> Vec<String> {
        let released: Value = serde_json::from_str(RELEASED).unwrap();
        let (released, present) = (plain(&released, &released), plain(present, present));
        let mut broken_at = Vec::new();
        for key in ["/paths", "/components/schemas", "/servers"] {
            broken(released.pointer(key).unwrap(), present.pointer(key).unwrap(), key, &mut broken_at);
        }
        broken_at
    }

    #[test]
    fn what_programs_know_of_the_last_release_still_holds() {
        assert_eq!(broken_since_release(&document().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn what_would_break_programs_is_found() {
        let with = |change: &dyn Fn(&mut Value)| {
            let mut present = document().unwrap();
            change(&mut present);
            broken_since_release(&present).len()
        };
        let remove = |value: &mut Value, key: &str| drop(value.as_object_mut().unwrap().remove(key));
        assert_eq!(with(&|all| remove(&mut all["paths"], "/locks")), 1);
        assert_eq!(with(&|all| remove(&mut all["paths"]["/users"], "post")), 1);
        assert_eq!(with(&|all| remove(&mut all["components"]["schemas"]["User"]["properties"], "uid")), 1);
        let of_shares = |all: &mut Value, name: &str, more: Value| {
            all["components"]["schemas"][name]["required"] = more;
        };
        assert_eq!(
            with(&|all| of_shares(all, "NewShare", serde_json::json!(["name", "directory", "plan"]))),
            1
        );
        assert_eq!(
            with(&|all| of_shares(all, "NewShare", serde_json::json!(["name"]))),
            0,
            "it asks for less"
        );
        assert_eq!(with(&|all| of_shares(all, "Shares", serde_json::json!([]))), 1, "an answer may lack it");
        assert_eq!(
            with(&|all| all["components"]["schemas"]["User"]["properties"]["uid"]["type"] = "string".into()),
            1
        );
    }
}
