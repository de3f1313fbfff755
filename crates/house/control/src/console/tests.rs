//! The console from outside, without a browser: its files and their headers, signing in, and what a cookie allows.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{ASSETS, Asset};
use crate::sign_in::SignIn;
use crate::sign_ins;
use crate::tests::{Served, ask, error, send, serve};
use crate::token::Token;
use crate::tokens::Scope;

const READ: u8 = 1;
const ALL: u8 = 3;

fn secret(n: u8) -> String {
    Token::new([n; 32]).as_str().to_owned()
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// A request of a browser, with these headers in addition.
fn call(at: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    send(
        at,
        &format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:8080\r\n{more}Content-Length: {length}\r\n\r\n{body}"
        ),
    )
}

fn sign_in(at: SocketAddr, token: &str) -> String {
    sign_in_with(at, &serde_json::json!({ "token": token }))
}

fn sign_in_with(at: SocketAddr, shown: &Value) -> String {
    call(at, "POST", "/v1/sign-in", &[("Content-Type", "application/json")], &shown.to_string())
}

/// A browser that is signed in.
struct Browser {
    at: SocketAddr,
    cookie: String,
    csrf: String,
}

impl Browser {
    fn sign_in(at: SocketAddr, token: u8) -> Self {
        Self::of(at, &sign_in(at, &secret(token)))
    }

    /// After this answer to a sign-in.
    fn of(at: SocketAddr, answer: &str) -> Self {
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        let cookie = header(answer, "set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let signed_in: SignIn = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        Self { at, cookie, csrf: signed_in.csrf.unwrap() }
    }

    fn call(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let headers = [&[("Cookie", self.cookie.as_str())], headers].concat();
        call(self.at, method, path, &headers, "")
    }

    /// A call as the page makes it.
    fn page(&self, method: &str, path: &str) -> String {
        self.call(method, path, &[("X-CSRF-Token", &self.csrf), ("Sec-Fetch-Site", "same-origin")])
    }
}

fn is(answer: &str, status: u16, kind: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status} {kind}: {answer}");
    assert_eq!(error(answer), kind);
}

#[test]
fn administrators_sign_in_with_the_password_of_their_account() {
    let Served { control: _control, address, .. } = serve();
    let shown = |user: &str, password: &str| serde_json::json!({ "user": user, "password": password });
    for (user, password) in [("anna", "wrong"), ("otto", "correct horse"), ("", "")] {
        is(&sign_in_with(address, &shown(user, password)), 401, "wrong-password");
    }
    for bad in [serde_json::json!({}), serde_json::json!({ "user": "anna" })] {
        is(&sign_in_with(address, &bad), 422, "invalid");
    }
    let both = serde_json::json!({ "user": "anna", "password": "correct horse", "token": secret(ALL) });
    is(&sign_in_with(address, &both), 422, "invalid");
    let answer = sign_in_with(address, &shown("anna", "correct horse"));
    let anna = Browser::of(address, &answer);
    let told = anna.page("GET", "/v1/sign-in");
    let told: SignIn = serde_json::from_str(told.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((told.user.as_deref(), told.token, told.scope), (Some("anna"), None, Scope::Shares));
    assert!(anna.page("GET", "/v1/shares").starts_with("HTTP/1.1 200 "));
    let refused = anna.page("GET", "/v1/tokens");
    is(&refused, 403, "scope");
    assert!(refused.contains("admins = [\\\"anna:all\\\"]"), "{refused}");
}

#[test]
fn administrators_call_the_api_with_their_password() {
    let Served { control: _control, address, .. } = serve();
    let get = |path: &str, headers: &[(&str, &str)]| call(address, "GET", path, headers, "");
    // anna:correct horse, anna:wrong, and anna alone
    let (right, wrong, none) = ("Basic YW5uYTpjb3JyZWN0IGhvcnNl", "Basic YW5uYTp3cm9uZw==", "Basic YW5uYQ==");
    assert!(get("/v1/shares", &[("Authorization", right)]).starts_with("HTTP/1.1 200 "));
    assert!(get("/metrics", &[("Authorization", right)]).starts_with("HTTP/1.1 200 "));
    is(&get("/v1/tokens", &[("Authorization", right)]), 403, "scope");
    is(&get("/v1/shares", &[("Authorization", wrong)]), 401, "wrong-password");
    is(&get("/metrics", &[("Authorization", wrong)]), 401, "wrong-password");
    is(&get("/v1/shares", &[("Authorization", none)]), 401, "wrong-token");
    let elsewhere = [("Authorization", right), ("Sec-Fetch-Site", "cross-site")];
    is(&get("/v1/shares", &elsewhere), 403, "other-page");
}

#[test]
fn the_page_and_its_files_are_kept_apart_from_all_other_pages() {
    let Served { control: _control, address, .. } = serve();
    for path in ["/", "/console"] {
        let answer = ask(address, path);
        assert!(answer.starts_with("HTTP/1.1 307 "), "{answer}");
        assert_eq!(header(&answer, "location"), Some("/console/"));
    }
    for (path, kind) in [
        ("/console/", "text/html; charset=utf-8"),
        ("/console/console.css", "text/css; charset=utf-8"),
        ("/console/main.js", "text/javascript; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ] {
        let answer = ask(address, path);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert_eq!(header(&answer, "content-type"), Some(kind), "{path}");
        let policy = header(&answer, "content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let etag = header(&answer, "etag").unwrap();
        let again = call(address, "GET", path, &[("If-None-Match", etag)], "");
        assert!(again.starts_with("HTTP/1.1 304 ") && again.ends_with("\r\n\r\n"), "{again}");
    }
    for path in ["/console/", "/console/nothing.js", "/v1/shares", "/metrics", "/healthz", "/nothing"] {
        let answer = ask(address, path);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(header(&answer, name), Some(value), "{path}: {answer}");
        }
    }
    assert!(ask(address, "/console/../Cargo.toml").starts_with("HTTP/1.1 404 "));
}

#[test]
fn who_is_signed_in_may_call_with_the_cookie_and_the_csrf_token() {
    let Served { control: _control, address, .. } = serve();
    let answer = sign_in(address, &secret(READ));
    let cookie = header(&answer, "set-cookie").unwrap();
    assert!(
        cookie.starts_with("anabranch-8080=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    assert_eq!(header(&answer, "cache-control"), Some("no-store"));
    let browser = Browser::sign_in(address, READ);
    assert!(browser.page("GET", "/v1/shares").starts_with("HTTP/1.1 200 "));
    let answer = browser.call("GET", "/v1/sign-in", &[]);
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        (&body["csrf"], &body["scope"], &body["token"]),
        (&browser.csrf.as_str().into(), &"read".into(), &"read".into())
    );
    assert!(body["seconds_left"].as_u64().unwrap() > 3600, "{body}");
    is(&browser.page("DELETE", "/v1/users/a"), 403, "scope");
    is(&browser.page("GET", "/v1/log"), 403, "scope");
    assert!(Browser::sign_in(address, ALL).page("GET", "/v1/log").contains("\"hello\""));
}

#[test]
fn the_cookie_alone_opens_nothing() {
    let Served { control: _control, address, .. } = serve();
    let browser = Browser::sign_in(address, ALL);
    let other = Browser::sign_in(address, ALL);
    for (method, path) in [("GET", "/v1/shares"), ("DELETE", "/v1/shares/a"), ("DELETE", "/v1/sign-in")] {
        is(&browser.call(method, path, &[]), 403, "no-csrf-token");
        is(&browser.call(method, path, &[("X-CSRF-Token", &other.csrf)]), 403, "no-csrf-token");
        let csrf = ("X-CSRF-Token", browser.csrf.as_str());
        for foreign in
            [("Sec-Fetch-Site", "same-site"), ("Origin", "http://localhost:9090"), ("Origin", "null")]
        {
            is(&browser.call(method, path, &[csrf, foreign]), 403, "other-page");
        }
    }
    is(&browser.call("GET", "/v1/sign-in", &[("Sec-Fetch-Site", "cross-site")]), 403, "other-page");
    is(&call(address, "GET", "/v1/shares", &[("Cookie", "anabranch-8080=x")], ""), 401, "signed-out");
    is(&call(address, "GET", "/v1/shares", &[("X-CSRF-Token", &browser.csrf)], ""), 401, "no-token");
    let to_another_port = browser.cookie.replace("8080", "8081");
    is(&call(address, "GET", "/v1/sign-in", &[("Cookie", &to_another_port)], ""), 401, "no-token");
}

#[test]
fn a_sign_in_ends_when_it_is_asked_to_and_with_its_token() {
    let Served { control: _control, address, tokens, .. } = serve();
    let [one, other] = [READ, READ].map(|token| Browser::sign_in(address, token));
    let answer = one.page("DELETE", "/v1/sign-in");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(header(&answer, "set-cookie").unwrap().starts_with("anabranch-8080=; Max-Age=0;"), "{answer}");
    is(&one.page("GET", "/v1/shares"), 401, "signed-out");
    assert!(other.page("GET", "/v1/shares").starts_with("HTTP/1.1 200 "));
    tokens.withdraw(Scope::Read.name());
    is(&other.page("GET", "/v1/shares"), 401, "signed-out");
    is(&sign_in(address, &secret(READ)), 401, "wrong-token");
}

#[test]
fn a_token_itself_needs_no_cookie_and_is_not_signed_out() {
    let Served { control: _control, address, .. } = serve();
    let bearer = format!("Bearer {}", secret(READ));
    let bearer = [("Authorization", bearer.as_str())];
    let answer = call(address, "GET", "/v1/sign-in", &bearer, "");
    assert!(answer.contains("\"scope\":\"read\"") && answer.contains("\"csrf\":null"), "{answer}");
    is(&call(address, "DELETE", "/v1/sign-in", &bearer, ""), 404, "not-found");
}

#[test]
fn only_a_page_of_this_address_signs_in() {
    let Served { control: _control, address, .. } = serve();
    let body = serde_json::json!({ "token": secret(ALL) }).to_string();
    let json = ("Content-Type", "application/json");
    for headers in [
        vec![("Content-Type", "text/plain")],
        Vec::new(),
        vec![json, ("Sec-Fetch-Site", "cross-site")],
        vec![json, ("Origin", "https://evil.example")],
    ] {
        is(&call(address, "POST", "/v1/sign-in", &headers, &body), 403, "other-page");
    }
    for body in ["", "{", "{}", r#"{"token": 1}"#, r#"{"token": "a", "more": 1}"#] {
        is(&call(address, "POST", "/v1/sign-in", &[json], body), 422, "invalid");
    }
    let ours = [json, ("Sec-Fetch-Site", "same-origin"), ("Origin", "http://localhost:8080")];
    assert!(call(address, "POST", "/v1/sign-in", &ours, &body).starts_with("HTTP/1.1 201 "));
}

#[test]
fn wrong_tokens_are_answered_late_and_at_last_not_looked_at() {
    let Served { control: _control, address, .. } = serve();
    let begun = Instant::now();
    is(&sign_in(address, "x"), 401, "wrong-token");
    assert!(begun.elapsed() >= auth::brake::DELAY_FIRST);
    // At the same time: each waits for those before it, until the queue is full.
    let guess = move |n: usize| std::thread::spawn(move || sign_in(address, &format!("{n}")));
    let guesses: Vec<_> = (0..20).map(guess).collect();
    let answers: Vec<String> = guesses.into_iter().map(|guess| guess.join().unwrap()).collect();
    let unheard = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 429 ")).count();
    assert!((1..20).contains(&unheard), "{unheard} of 20: {answers:?}");
    let refused = answers.iter().find(|answer| answer.starts_with("HTTP/1.1 429 ")).unwrap();
    assert_eq!((error(refused).as_str(), header(refused, "retry-after")), ("throttled", Some("10")));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !sign_in(address, &secret(READ)).starts_with("HTTP/1.1 201 ") {
        assert!(Instant::now() < deadline, "who has the token gets in in the end");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn who_signs_in_too_often_ends_his_own_oldest() {
    let Served { control: _control, address, .. } = serve();
    let other = Browser::sign_in(address, ALL);
    let all: Vec<_> = (0..=sign_ins::OF_ONE_HOLDER_MAX).map(|_| Browser::sign_in(address, READ)).collect();
    is(&all[0].page("GET", "/v1/shares"), 401, "signed-out");
    for browser in all[1..].iter().chain([&other]) {
        assert!(browser.page("GET", "/v1/shares").starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn the_state_of_all_sign_ins_is_gone_with_the_server() {
    let Served { control, address, .. } = serve();
    let browser = Browser::sign_in(address, ALL);
    drop(control);
    let Served { control: _control, address, .. } = serve();
    let browser = Browser { at: address, ..browser };
    is(&browser.page("GET", "/v1/shares"), 401, "signed-out");
}

/// The most bytes of the first page with all that it loads.
const BYTES_MAX: usize = 150_000;

/// The files that are loaded before anybody goes anywhere: all but the scripts that only an `import()` loads.
fn first_page() -> Vec<&'static Asset> {
    let imports = |name: &str| {
        let text = ASSETS.iter().find(|asset| asset.name == name).unwrap().text;
        text.lines()
            .filter(|line| line.starts_with("import "))
            .map(|line| line.split("'./").nth(1).unwrap().trim_end_matches("';"))
            .collect::<Vec<_>>()
    };
    let mut loaded = vec!["main.js"];
    let mut at = 0;
    while let Some(&name) = loaded.get(at) {
        let more: Vec<_> = imports(name).into_iter().filter(|of| !loaded.contains(of)).collect();
        loaded.extend(more);
        at += 1;
    }
    ASSETS.iter().filter(|asset| asset.kind != super::SCRIPT || loaded.contains(&asset.name)).collect()
}

#[test]
fn the_files_are_small_and_use_nothing_from_elsewhere() {
    let bytes: usize = first_page().iter().map(|asset| asset.text.len()).sum();
    assert!(bytes < BYTES_MAX, "{bytes} bytes");
    for Asset { name, text, .. } in ASSETS {
        for elsewhere in ["http://", "https://", "url(", "innerHTML", "eval(", "style="] {
            let text = text.replace("http://www.w3.org/", "").replace("https://HOST:PORT/", "");
            assert!(!text.contains(elsewhere), "{name}: {elsewhere}");
        }
    }
}

#[test]
fn every_file_of_the_folder_is_served() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
    let mut there: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    let mut served: Vec<_> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
    served.sort();
    assert_eq!(there, served);
}
