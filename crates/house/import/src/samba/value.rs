//! Values of parameters.

/// A boolean: case is not significant. None: Samba does not load the file.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A string: one pair of quotes around it is not part of it (`lp_string`).
pub(super) fn string(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).unwrap_or(text)
}

/// The entries of a list: separated by white space, commas and semicolons (`LIST_SEP`), which quotes protect.
pub(super) fn list(text: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let (mut entry, mut is_quoted) = (String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' | ',' | ';' | '\n' | '\r' if !is_quoted => {
                if !entry.is_empty() {
                    entries.push(std::mem::take(&mut entry));
                }
            }
            c => entry.push(c),
        }
    }
    if !entry.is_empty() {
        entries.push(entry);
    }
    entries
}

/// A mode in octal digits.
pub(super) fn mode(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8).ok()
}

/// How strongly signing or encryption is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requirement {
    Default,
    Off,
    IfRequired,
    Desired,
    Required,
}

/// `server signing` and `server smb encrypt` have the same words (`enum_smb_signing_vals`, `enum_smb_encryption_vals`).
pub(super) fn requirement(text: &str) -> Option<Requirement> {
    Some(match text.to_ascii_lowercase().as_str() {
        "default" => Requirement::Default,
        "no" | "false" | "0" | "off" | "disabled" => Requirement::Off,
        "if_required" | "yes" | "true" | "1" | "on" | "enabled" | "auto" => Requirement::IfRequired,
        "desired" => Requirement::Desired,
        "required" | "mandatory" | "force" | "forced" | "enforced" => Requirement::Required,
        _ => return None,
    })
}

/// Replaces `%` variables whose values are known. None: one is not.
pub(super) fn substitute(text: &str, known: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let name_length = match after.strip_prefix("$(") {
            Some(inner) => inner.find(')')?.saturating_add(3),
            None => after.chars().next()?.len_utf8(),
        };
        let (name, after) = after.split_at_checked(name_length)?;
        out.push_str(&known(name)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_quotes_and_many_separators() {
        let of = |text: &str| list(text).join("|");
        assert_eq!(of("anna, \"DOM\\joe user\" @staff;c\t+d ,"), "anna|DOM\\joe user|@staff|c|+d");
        assert_eq!(of("@\"domain users\" x"), "@domain users|x");
        assert_eq!(of(" , "), "");
    }

    #[test]
    fn quotes_around_a_string_are_not_part_of_it() {
        for (text, expected) in [
            ("\"/a b\"", "/a b"),
            ("\"a\" b", "\"a\" b"),
            ("\"a\" \"b\"", "\"a\" \"b\""),
            ("\"", "\""),
            ("a", "a"),
        ] {
            assert_eq!(string(text), expected);
        }
    }

    #[test]
    fn variables_are_replaced_if_all_are_known() {
        let known = |name: &str| match name {
            "h" => Some("host".to_owned()),
            "$(HOME)" => Some("/var/x".to_owned()),
            _ => None,
        };
        let of = |text| substitute(text, &known);
        assert_eq!(of("/etc/%h.conf").as_deref(), Some("/etc/host.conf"));
        assert_eq!(of("%$(HOME)/x").as_deref(), Some("/var/x/x"));
        for unknown in ["%m", "%", "%$(HOME", "%h%\u{fc}", "%$(OTHER)"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
