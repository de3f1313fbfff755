use super::*;

fn parse(path: &str) -> Result<Vec<String>, NtStatus> {
    let path = Path::parse(&Utf16::from(path))?;
    Ok(path.components.into_iter().map(|c| String::from_utf8(c).unwrap()).collect())
}

#[test]
fn paths_are_split_at_backslashes() {
    assert_eq!(parse(""), Ok(vec![]));
    assert_eq!(parse("a"), Ok(vec!["a".into()]));
    assert_eq!(parse("a\\b c\\d.e"), Ok(vec!["a".into(), "b c".into(), "d.e".into()]));
    assert_eq!(parse("\u{e4}\\\u{1f600}"), Ok(vec!["\u{e4}".into(), "\u{1f600}".into()]));
    assert_eq!(parse("..."), Ok(vec!["...".into()]));
}

#[test]
fn what_is_no_name_is_refused() {
    let invalid = ["a/b", "a*", "?", "a|b", "a<", "a>", "a\"", "a\u{1}", "a\u{1f}", "a\0b", "a\0"];
    for name in invalid {
        assert_eq!(parse(name), Err(NtStatus::OBJECT_NAME_INVALID), "{name:?}");
    }
    for name in ["..", "..\\..\\..", "a\\..\\..\\b", "a\\\\..\\.."] {
        assert_eq!(parse(name), Err(NtStatus::OBJECT_PATH_SYNTAX_BAD), "{name:?} leads out");
    }
    for name in ["\\", "\\a", "\\\\server\\share\\a", "/a"] {
        assert_eq!(parse(name), Err(NtStatus::INVALID_PARAMETER), "{name:?}");
    }
    // the private characters make no way around it
    for name in ["\u{f029}", "\u{f029}\u{f029}", "a\\.\u{f029}\\b"] {
        assert_eq!(parse(name), Err(NtStatus::OBJECT_NAME_INVALID), "{name:?}");
    }
}

/// What a client puts behind the target of a link in its path.
#[test]
fn the_text_behind_each_name_is_known() {
    // [MS-SMB2] 2.2.2.2.1.1: the unparsed portion of this path has 0x2E bytes.
    let path = Path::parse(&"Public\\ProtocolDocs\\DailyDocs\\[MS-SMB].doc".into()).unwrap();
    assert_eq!(path.unparsed_bytes(2), 0x2E);
    let behind = |path: &str, link: usize| {
        let home = Path::parse(&path.into()).unwrap().below(Some(b"home"));
        let bytes = usize::from(home.unparsed_bytes(link));
        let units: Vec<u16> = path.encode_utf16().collect();
        String::from_utf16(&units[units.len() - bytes / 2..]).unwrap()
    };
    assert_eq!([behind("a\\b", 0), behind("a\\b", 1), behind("a", 0)], ["", "\\b", ""]);
    assert_eq!(behind("a\\link\\.\\\\c\\", 1), "\\.\\\\c\\");
    assert_eq!(behind("a\\none\\..\\link\\c", 1), "\\c");
    assert_eq!([behind("d\\f:s", 0), behind("d\\f:s", 1), behind("d\\", 0)], [":s", "\\f:s", "\\"]);
    assert_eq!(behind("\u{1f600}\\\u{e4}\u{1f600}", 1), "\\\u{e4}\u{1f600}");
    assert_eq!(Path::parse(&"".into()).unwrap().below(Some(b"home")).unparsed_bytes(0), 0);
}

#[test]
fn lone_surrogates_are_refused() {
    let wire = [0x61, 0x00, 0x00, 0xd8];
    let name = Utf16::from_wire(&wire).unwrap();
    assert_eq!(Path::parse(&name), Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn names_at_the_edge() {
    let fits = "x".repeat(255);
    assert_eq!(parse(&fits), Ok(vec![fits.clone()]));
    assert_eq!(parse(&"x".repeat(256)), Err(NtStatus::OBJECT_NAME_INVALID));
    // 127 characters of two bytes fit into the store's 255 bytes, 128 do not
    assert!(parse(&"\u{e4}".repeat(127)).is_ok());
    assert_eq!(parse(&"\u{e4}".repeat(128)), Err(NtStatus::OBJECT_NAME_INVALID));
    let deep = vec!["d"; COMPONENTS_MAX].join("\\");
    assert_eq!(parse(&deep).unwrap().len(), COMPONENTS_MAX);
    assert_eq!(parse(&format!("{deep}\\d")), Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn a_backslash_at_the_end_names_a_directory() {
    let path = Path::parse(&"a\\b\\".into()).unwrap();
    assert_eq!(path.components, [b"a".to_vec(), b"b".to_vec()]);
    assert!(path.names_directory && path.stream == StreamPart::None);
    assert!(!Path::parse(&"a\\b".into()).unwrap().names_directory);
    let path = Path::parse(&"a\\b\\\\".into()).unwrap();
    assert!(path.names_directory && path.components.len() == 2);
}

#[test]
fn dot_names_and_empty_ones_are_resolved_by_the_text() {
    for (path, same) in [
        ("dirA\\.\\dirB", "dirA\\dirB"),
        ("dirA\\dirB\\..\\dirC", "dirA\\dirC"),
        ("a\\\\b", "a\\b"),
        ("a\\..", ""),
        (".", ""),
        ("a\\b\\..\\..\\c", "c"),
        ("a\\..\\f:s", "f:s"),
    ] {
        let parsed = |path: &str| Path::parse(&path.into()).map(|path| (path.components, path.stream));
        assert_eq!(parsed(path), parsed(same), "{path:?}");
    }
    let deep = ["d\\..\\"; COMPONENTS_MAX].concat();
    assert_eq!(parse(&deep), Ok(vec![]), "no deeper than one");
}

fn stream(path: &str) -> Result<StreamPart, NtStatus> {
    Path::parse(&Utf16::from(path)).map(|path| path.stream)
}

fn named(name: &str) -> Result<StreamPart, NtStatus> {
    Ok(StreamPart::Named(name.as_bytes().to_vec()))
}

#[test]
fn the_last_component_may_name_a_stream() {
    assert_eq!(parse("a\\f::$DATA"), Ok(vec!["a".into(), "f".into()]));
    assert_eq!(parse("a\\f:s"), Ok(vec!["a".into(), "f".into()]));
    assert_eq!(parse(":s"), Ok(vec![]));
    assert_eq!(stream("f"), Ok(StreamPart::None));
    assert_eq!(stream("f::$data"), Ok(StreamPart::Data));
    assert_eq!(stream("::$DATA"), Ok(StreamPart::Data));
    for (path, name) in [
        ("a\\f:s", "s"),
        ("f:Stream One:$DaTa", "Stream One"),
        (":s", "s"),
        ("f:?*<>|\":$DATA", "?*<>|\""),
        ("f:\u{5}S\n", "\u{5}S\n"),
        ("f:.", "."),
        ("f:..", ".."),
        ("f:$DATA", "$DATA"),
        ("f:\u{f022}", "\u{f022}"),
    ] {
        assert_eq!(stream(path), named(name), "{path:?}");
    }
    for path in ["d::$INDEX_ALLOCATION", "d:$I30:$INDEX_ALLOCATION", "d:$i30:$index_allocation"] {
        let path = Path::parse(&path.into()).unwrap();
        assert!(path.names_directory && path.stream == StreamPart::Index);
    }
    assert_eq!(stream("d:x:$INDEX_ALLOCATION"), Err(NtStatus::INVALID_PARAMETER));
}

#[test]
fn what_is_no_stream_is_refused() {
    for name in [
        "f::$FOO",
        "f:s:$FOO",
        "f:s:",
        "f:",
        "f::",
        ":",
        "f:s:t:$DATA",
        "f:s:$DATA:",
        "a:s\\f",
        "a::$DATA\\f",
        "a\\:s",
        "d:s\\",
        "f:a/b",
        "f:a\0b",
        "f*:s",
        "f:s\\t",
    ] {
        assert_eq!(stream(name), Err(NtStatus::OBJECT_NAME_INVALID), "{name:?}");
    }
    let longest = "\u{20ac}".repeat(255);
    assert_eq!(stream(&format!("f:{longest}")), named(&longest));
    assert_eq!(stream(&format!("f:{longest}:$DATA")), named(&longest));
    assert_eq!(stream(&format!("f:{longest}x")), Err(NtStatus::OBJECT_NAME_INVALID));
    assert_eq!(stream(&format!("f:{}", "\u{1f600}".repeat(128))), Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn a_stream_is_renamed_to_what_follows_a_colon() {
    assert_eq!(parse_stream_rename("f:s"), Ok(None));
    assert_eq!(parse_stream_rename(":s:$data"), Ok(Some(StreamPart::Named(b"s".to_vec()))));
    assert_eq!(parse_stream_rename("::$DATA"), Ok(Some(StreamPart::Data)));
    for name in ["::$INDEX_ALLOCATION", ":s:$INDEX_ALLOCATION", ":s:$FOO"] {
        assert_eq!(parse_stream_rename(name), Err(NtStatus::OBJECT_TYPE_MISMATCH), "{name:?}");
    }
    for name in [":", "::", ":s:", ":s:$DATA:", ":a\\b", ":a/b", ":s:t\\u"] {
        assert_eq!(parse_stream_rename(name), Err(NtStatus::INVALID_PARAMETER), "{name:?}");
    }
}

#[test]
fn private_characters_stand_for_reserved_ones() {
    assert_eq!(parse("a\u{f022}b\u{f026}c\u{f025}"), Ok(vec!["a:b\\c?".into()]));
    assert_eq!(parse("end\u{f029}"), Ok(vec!["end.".into()]));
    assert_eq!(parse("end\u{f028}"), Ok(vec!["end ".into()]));
    assert_eq!(parse("tab\u{f009}"), Ok(vec!["tab\t".into()]));
    assert_eq!(to_client(b"a:b\\c?").unwrap(), "a\u{f022}b\u{f026}c\u{f025}");
    assert_eq!(to_client(b"end.").unwrap(), "end\u{f029}");
    assert_eq!(to_client(b"in. side ").unwrap(), "in. side\u{f028}");
    assert_eq!(to_client(b"tab\t").unwrap(), "tab\u{f009}");
    assert_eq!(to_client(b"plain.txt").unwrap(), "plain.txt");
    assert_eq!(to_client(b"\xff"), None);
    assert_eq!(path_to_client(b"a/b:c/\xff"), "a\\b\u{f022}c\\\u{fffd}");
    assert_eq!(path_to_client(b""), "");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A name of the store returns unchanged, whatever it contains.
        #[test]
        fn what_clients_see_names_the_same_object(stored in "[^/\0\u{f001}-\u{f029}]{1,60}") {
            prop_assume!(stored != "." && stored != "..");
            let seen = to_client(stored.as_bytes()).unwrap();
            prop_assert_eq!(parse(&seen), Ok(vec![stored]));
        }

        /// Each accepted name is a name that a store accepts.
        #[test]
        fn nothing_dangerous_comes_through(units in proptest::collection::vec(any::<u16>(), 0..80)) {
            let wire: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
            if let Ok(path) = Path::parse(&Utf16::from_wire(&wire).unwrap()) {
                for component in &path.components {
                    prop_assert!(storage::Name::new(component).is_ok());
                }
                if let StreamPart::Named(name) = &path.stream {
                    prop_assert!(storage::StreamName::new(name).is_ok());
                }
            }
        }

        /// The same for text that is nearly a stream.
        #[test]
        fn nothing_but_stream_names_comes_through(text in "[a$:\\\\/.\0DATI30]{0,24}") {
            if let Ok(Path { stream: StreamPart::Named(name), .. }) = Path::parse(&Utf16::from(text.as_str())) {
                prop_assert!(storage::StreamName::new(&name).is_ok());
                prop_assert!(text.as_bytes().windows(name.len()).any(|part| part == name));
            }
        }

        #[test]
        fn patterns_never_panic_and_star_is_everything(pattern in "[a-c.*?<>\"]{0,12}", name in "[a-cA-C.]{0,12}") {
            let all = Pattern::parse(&"*".into()).unwrap();
            prop_assert!(all.matches(&name));
            let pattern = Pattern::parse(&Utf16::from(pattern.as_str())).unwrap();
            prop_assert_eq!(pattern.matches(&name), pattern.matches(&name.to_uppercase()));
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::parse(&Utf16::from(pattern)).unwrap().matches(name)
}

#[test]
fn wildcards_match_as_the_specification_says() {
    // pattern, names that match, names that do not
    let cases: [(&str, &[&str], &[&str]); 14] = [
        ("*", &["", "a", "a.b", ".."], &[]),
        ("", &["a", "a.b"], &[]),
        ("*.*", &["a.b", ".a", "a."], &["a"]),
        ("*.txt", &["a.txt", "A.TXT", ".txt", "a.b.txt"], &["a.txt2", "txt"]),
        ("?", &["a", "."], &["", "ab"]),
        ("a?c", &["abc", "a.c"], &["ac", "abbc"]),
        (">>>", &["", "a", "abc"], &["abcd", "a.b"]),
        (">>>.>>>", &["a.b", "abc.abc", ".", "a."], &["abcd.a", "a"]),
        ("<.txt", &["a.txt", "a.b.txt", ".txt"], &["a.txt.b", "txt"]),
        ("<", &["a", "a.", "abc"], &["a.b"]),
        ("<\"*", &["a.b", "a", "a.b.c"], &[]),
        ("a\"", &["a", "a."], &["ab", "a.b"]),
        ("a\"b", &["a.b"], &["ab", "a"]),
        ("*a*b*c", &["abc", "xaxbxc", "aabbcc"], &["ab", "acb"]),
    ];
    for (pattern, yes, no) in cases {
        for name in yes {
            assert!(matches(pattern, name), "{pattern:?} finds {name:?}");
        }
        for name in no {
            assert!(!matches(pattern, name), "{pattern:?} does not find {name:?}");
        }
    }
}

#[test]
fn a_pattern_without_wildcards_is_one_name() {
    assert_eq!(Pattern::parse(&"Foo.txt".into()).unwrap().literal(), Some("Foo.txt"));
    assert_eq!(Pattern::parse(&"F*".into()).unwrap().literal(), None);
    assert!(matches("foo.TXT", "FOO.txt"));
    assert!(!matches("foo", "foo.txt"));
    for bad in ["a\\b", "a/b", "a:b", "a\u{1}"] {
        assert!(Pattern::parse(&Utf16::from(bad)).is_err(), "{bad:?}");
    }
}

#[test]
fn a_long_pattern_costs_no_more_than_its_length_times_the_name() {
    let pattern = Pattern::parse(&Utf16::from("*a".repeat(120).as_str())).unwrap();
    assert!(!pattern.matches(&"a".repeat(119)));
    assert!(pattern.matches(&"a".repeat(250)));
}

#[test]
fn patterns_are_no_longer_than_names() {
    for (length, ok) in [(COMPONENT_UNITS_MAX, true), (COMPONENT_UNITS_MAX + 1, false)] {
        let pattern = "*".repeat(length);
        assert_eq!(Pattern::parse(&Utf16::from(pattern.as_str())).is_ok(), ok, "{length}");
    }
}

/// Any name from a client is either refused, or leads to names that stores accept. Clients see each of these under a
/// name that leads there again.
#[test]
fn no_name_is_more_than_a_name() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let units: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        // Every code unit, and text with meaningful characters in between.
        let text = String::from_utf8_lossy(bytes);
        let speaking = text.replace('\u{fffd}', ":").replace(['a', 'b'], "\\").replace('c', ":$DATA");
        for name in [String::from_utf16_lossy(&units), text.into_owned(), speaking] {
            let wire = Utf16::from(name.as_str());
            let _ = (Pattern::parse(&wire).map(|pattern| pattern.matches(&name)), parse_stream_rename(&name));
            let Ok(path) = Path::parse(&wire) else { continue };
            assert!(path.components.len() <= COMPONENTS_MAX);
            for stored in &path.components {
                assert!(storage::Name::new(stored).is_ok(), "{stored:?}");
                let shown = to_client(stored).unwrap();
                assert_eq!(component(&shown).as_ref(), Ok(stored), "{shown:?}");
            }
            if let StreamPart::Named(stream) = &path.stream {
                assert!(storage::StreamName::new(stream).is_ok(), "{stream:?}");
            }
        }
    });
}
