//! `anabranch report`: what it makes of results, opened in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::chromium::{Chromium, Screen};
use crate::server::{Server, flags, path, program};

const PHONE: Screen = Screen { width: 360, height: 740, dark: false };
const DESKTOP: Screen = Screen { width: 1280, height: 900, dark: false };

/// The exit status, and what the program printed and said.
fn report(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = program(&[&["report"], arguments].concat()).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A directory with results of several families and protocols.
struct Results {
    directory: TempDir,
}

impl Results {
    /// Results of both protocols, and of a directory.
    fn of_all() -> Self {
        let results = Self::of_directory();
        let flags = flags(&results.directory);
        let mut server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        let smb = format!("smb://anna:hush-hush@{}/data", server.address("smb"));
        let nfs = format!("nfs://{}/data?vers=4.1", server.address("nfs"));
        results.measure("smb-mc-multifile", &smb, "channels.json");
        results.measure("smb-security", &smb, "security.json");
        results.measure("nfs-nconnect", &nfs, "connections.json");
        results.measure("nfs-readahead", &nfs, "read-ahead.json");
        results.measure("metadata", &nfs, "names-nfs.json");
        assert_eq!(server.end_with("TERM"), Some(0));
        results
    }

    /// One result, of a directory of this machine.
    fn of_directory() -> Self {
        let results = Self { directory: TempDir::new().unwrap() };
        for name in ["results", "local"] {
            fs::create_dir(results.path(name)).unwrap();
        }
        results.measure(
            "metadata",
            &format!("dir:{}", path(&results.directory, "local")),
            "names-local.json",
        );
        results
    }

    fn measure(&self, family: &str, target: &str, name: &str) {
        let out = path(&self.directory, &format!("results/{name}"));
        let short = ["--quick", "--seconds", "0.05", "--ramp", "0.01", "--file-size", "1M"];
        let arguments = [&["bench", "run", family, "--target", target, "--out", &out], &short[..]].concat();
        let output = program(&arguments).output().unwrap();
        assert!(output.status.success(), "{family}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn results(&self) -> String {
        path(&self.directory, "results")
    }

    fn one(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(&format!("results/{name}"))).unwrap()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A page that is shown under a name of its own.
    fn page(&self, name: &str, html: &str) -> PathBuf {
        let page = self.path(name);
        fs::write(&page, html).unwrap();
        page
    }
}

#[test]
fn the_pages_load_nothing_have_no_error_and_fit_phone_and_desktop() {
    let results = Results::of_all();
    let out = path(&results.directory, "report");
    let (status, printed, said) = report(&[&results.results(), "--out", &out]);
    assert_eq!((status, printed.as_str()), (0, ""), "{said}");
    let mut browser = Chromium::start();
    let pages = pages(&results.path("report"));
    assert!(pages.len() > 6, "{pages:?}");
    let mut charts = 0;
    for page in &pages {
        for screen in [PHONE, DESKTOP] {
            for dark in [false, true] {
                charts += looks_right(&mut browser, page, Screen { dark, ..screen });
            }
        }
    }
    assert!(charts > 8, "charts: {charts}");
    the_theme_can_be_switched(&mut browser, &results.path("report/index.html"));
}

/// The pages of a report.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "html")).collect();
    pages.sort();
    pages
}

/// A page loads nothing, has no error, fits the screen, and what is in it has a name; the number of its charts.
fn looks_right(browser: &mut Chromium, page: &Path, screen: Screen) -> u64 {
    let visit = browser.visit(page, screen);
    let at = format!("{} {screen:?}", page.display());
    assert_eq!((visit.requests.as_slice(), visit.errors.as_slice()), (&[][..], &[][..]), "{at}");
    assert!(visit.overflow <= 0, "{at}: {} pixels too wide", visit.overflow);
    let opened = browser.evaluate(
        &visit,
        "document.querySelectorAll('details').forEach(d => d.open = true), document.documentElement.scrollWidth",
    );
    assert!(opened.as_u64() <= Some(screen.width.into()), "{at}: with all opened {opened} pixels wide");
    for (what, is_so) in [
        ("one h1", "document.querySelectorAll('h1').length === 1"),
        ("a title and a language", "document.title.length > 0 && document.documentElement.lang === 'en'"),
        (
            "tables have heads",
            "[...document.querySelectorAll('table')].every(t => t.querySelector('th[scope]'))",
        ),
        (
            "links have words",
            "[...document.querySelectorAll('a')].every(a => a.textContent.trim() && a.getAttribute('href'))",
        ),
        (
            "ids are there once",
            "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length",
        ),
        (
            "charts are there",
            "[...document.querySelectorAll('figure > svg')].every(s => s.getBoundingClientRect().width > 200 && s.querySelector('title').textContent)",
        ),
    ] {
        assert_eq!(browser.evaluate(&visit, is_so), true, "{at}: {what}");
    }
    browser.evaluate(&visit, "document.querySelectorAll('figure > svg').length").as_u64().unwrap()
}

/// What is seen at once on a small laptop.
const LAPTOP: Screen = Screen { width: 1280, height: 800, dark: false };

#[test]
fn the_first_screen_has_the_verdict_the_peers_and_three_changes() {
    let results = Results::of_all();
    for (name, peer) in [
        ("channels", "Samba 4.17.12-Debian"),
        ("security", "Samba 4.17.12-Debian"),
        ("connections", "NFS-Ganesha 4.3"),
        ("read-ahead", "NFS-Ganesha 4.3"),
        ("names-nfs", "NFS-Ganesha 4.3"),
    ] {
        // What was measured here hangs on the machine: the figures are set, all else is as it was written.
        let mut ours = results.one(&format!("{name}.json"));
        ours["environment"]["server"] = "Anabranch 0.2.0".into();
        let mut theirs = ours.clone();
        theirs["environment"]["server"] = peer.into();
        set_figures(&mut ours, 2_000);
        set_figures(&mut theirs, 1_000);
        results.page(&format!("results/{name}.json"), &ours.to_string());
        results.page(&format!("results/{name}.peer.json"), &theirs.to_string());
    }
    let out = path(&results.directory, "report");
    assert_eq!(report(&[&results.results(), "--out", &out]).0, 0);
    let mut browser = Chromium::start();
    for dark in [false, true] {
        let visit = browser.visit(&results.path("report/index.html"), Screen { dark, ..LAPTOP });
        let text = |browser: &mut Chromium, selector: &str| {
            let of = format!("document.querySelector({selector:?}).innerText");
            browser.evaluate(&visit, &of).as_str().unwrap().to_owned()
        };
        let verdict = text(&mut browser, "h1");
        assert!(
            verdict.starts_with("Anabranch") && verdict.contains(" is good: faster than its peers in "),
            "{verdict}"
        );
        for part in ["h1", "#peers", "#changes"] {
            let bottom = format!("document.querySelector({part:?}).getBoundingClientRect().bottom");
            let bottom = browser.evaluate(&visit, &bottom).as_f64().unwrap();
            assert!(bottom > 0.0 && bottom <= f64::from(LAPTOP.height), "{part} ends at {bottom}");
        }
        let peers = text(&mut browser, "#peers");
        for words in
            ["Against Samba", "Against NFS-Ganesha", "small reads", "signed or encrypted", "2.00x, faster"]
        {
            assert!(peers.contains(words), "{words} in {peers}");
        }
        let changes =
            "[...document.querySelectorAll('.changes > li')].filter(li => li.querySelector('code')).length";
        assert_eq!(browser.evaluate(&visit, changes), 3, "{}", text(&mut browser, "#changes"));
        let changes = text(&mut browser, "#changes");
        for words in ["read-ahead", "nconnect=4", "max_channels=4", "or more"] {
            assert!(changes.contains(words), "{words} in {changes}");
        }
    }
}

/// Sets the operations of all repetitions: more over more connections and with read-ahead, and a little more from row to row. A
/// repetition in which nothing was done, as on a busy machine, has those of another one.
fn set_figures(result: &mut Value, rate: u64) {
    let is_empty = |operations: &Value| operations.as_object().unwrap().is_empty();
    let repetitions = |row: &Value| row["repetitions"].as_array().unwrap().clone();
    let all = result["rows"].as_array().unwrap().iter().flat_map(repetitions);
    let mut known =
        all.map(|one| one["operations"].clone()).find(|operations| !is_empty(operations)).unwrap();
    for row in result["rows"].as_array_mut().unwrap() {
        let more = if row["key"]["connections"] == 1 { 10 } else { 15 };
        let more = if row["key"]["settings"]["readahead"] == "128KiB" { 7 } else { more };
        let block = row["key"]["block_bytes"].as_u64().unwrap();
        for (n, repetition) in row["repetitions"].as_array_mut().unwrap().iter_mut().enumerate() {
            repetition["seconds"] = 1.0.into();
            let count = rate * more / 10 + u64::try_from(n).unwrap();
            if is_empty(&repetition["operations"]) {
                repetition["operations"] = known.clone();
            } else {
                known = repetition["operations"].clone();
            }
            for tally in repetition["operations"].as_object_mut().unwrap().values_mut() {
                tally["count"] = count.into();
                tally["bytes"] = (count * block).into();
            }
        }
    }
}

fn the_theme_can_be_switched(browser: &mut Chromium, page: &Path) {
    const BACKGROUND: &str = "getComputedStyle(document.body).backgroundColor";
    let switched = |theme: &str| format!("document.getElementById('theme-{theme}').click(), {BACKGROUND}");
    let light = browser.visit(page, DESKTOP);
    let day = browser.evaluate(&light, BACKGROUND);
    let dark = browser.visit(page, Screen { dark: true, ..DESKTOP });
    let night = browser.evaluate(&dark, BACKGROUND);
    assert_ne!(day, night);
    assert_eq!(browser.evaluate(&dark, &switched("light")), day);
    assert_eq!(browser.evaluate(&dark, &switched("dark")), night);
    assert_eq!(browser.evaluate(&dark, &switched("light")), day);
    assert_eq!(browser.evaluate(&dark, &switched("auto")), night);
}

/// What the test above looks for is found where it is.
#[test]
fn pages_that_load_something_or_have_an_error_or_are_too_wide_are_caught() {
    let results = Results::of_directory();
    let (_, html, _) = report(&[&results.results(), "--format", "html"]);
    let with = |more: &str| html.replace("</main>", &format!("{more}</main>"));
    let without_policy = |more: &str| with(more).replace("Content-Security-Policy", "X-None");
    let mut browser = Chromium::start();

    let image = "<img src=\"http://127.0.0.1:9/x.png\">";
    let visit = browser.visit(&results.page("loads.html", &without_policy(image)), PHONE);
    assert_eq!(visit.requests, ["http://127.0.0.1:9/x.png"]);
    let visit = browser.visit(&results.page("refused.html", &with(image)), PHONE);
    assert!(!visit.errors.is_empty() || !visit.requests.is_empty(), "the policy refuses it, and says so");

    let script = "<script>document.nothing.there</script>";
    let visit = browser.visit(&results.page("fails.html", &without_policy(script)), PHONE);
    assert!(visit.errors.iter().any(|e| e.contains("TypeError")), "{:?}", visit.errors);
    let visit = browser.visit(&results.page("forbidden.html", &with(script)), PHONE);
    assert!(visit.errors.iter().any(|e| e.contains("Content Security Policy")), "{:?}", visit.errors);

    let visit =
        browser.visit(&results.page("wide.html", &with("<div style=\"width:2000px\">x</div>")), DESKTOP);
    assert!(visit.overflow > 500, "{}", visit.overflow);
}

#[test]
fn what_results_say_is_text() {
    let results = Results::of_directory();
    let mut result = results.one("names-local.json");
    let hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'|`";
    result["environment"]["target"] = hostile.into();
    result["environment"]["server"] = hostile.into();
    result["environment"]["client"]["cpu"] = hostile.into();
    result["not_honoured"] = [hostile].into();
    result["problems"] = serde_json::json!([{ "kind": "refused", "text": hostile }]);
    let file = results.page("hostile<b>.json", &result.to_string());
    let (status, html, said) = report(&[file.to_str().unwrap(), "--format", "html"]);
    assert_eq!(status, 0, "{said}");
    let visit = Chromium::start().visit(&results.page("hostile.html", &html), PHONE);
    assert_eq!((visit.requests.as_slice(), visit.errors.as_slice()), (&[][..], &[][..]));
    assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains("<script"));
    let (_, markdown, _) = report(&[file.to_str().unwrap()]);
    assert!(markdown.contains("\\<script\\>") && !markdown.replace("\\<", "").contains('<'), "{markdown}");
}

#[test]
fn all_forms_have_the_same_verdicts() {
    let results = Results::of_directory();
    let mut other = results.one("names-local.json");
    other["environment"]["target"] = "dir:/elsewhere".into();
    results.page("results/names-other.json", &other.to_string());
    let out = path(&results.directory, "report");
    assert_eq!(report(&[&results.results(), "--out", &out]).0, 0);
    let read = |name: &str| fs::read_to_string(results.path(&format!("report/{name}"))).unwrap();
    let model: Value = serde_json::from_str(&read("report.json")).unwrap();
    let findings: Vec<&Value> = model["documents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|document| document["statements"].as_array().unwrap())
        .flat_map(|statement| statement["findings"].as_array().unwrap())
        .collect();
    let count = |verdict: &str| findings.iter().filter(|f| f["judgement"] == verdict).count();
    assert!(findings.len() > 40 && model["runs"].as_array().unwrap().len() == 2);
    let (markdown, html) = (read("README.md"), read("index.html"));
    for (judgement, words) in [
        ("reproduced", "reproduced"),
        ("better", "better"),
        ("worse", "worse"),
        ("mixed", "mixed"),
        ("too-noisy", "too noisy"),
        ("cannot-be-tested", "cannot be tested here"),
    ] {
        assert_eq!(markdown.matches(&format!("| **{words}** |")).count(), count(judgement), "{words}");
        assert!(html.contains(&format!("<b>{}</b>{words}", count(judgement))), "{words}");
    }
    // The three words that programs know say the same.
    for finding in &findings {
        let expected = match finding["judgement"].as_str().unwrap() {
            "reproduced" => "reproduced",
            "better" | "worse" | "mixed" => "not-reproduced",
            _ => "cannot-be-tested",
        };
        assert_eq!(finding["verdict"], expected, "{finding:#}");
    }
    assert_eq!(model["beside"].as_array().unwrap().len(), 1);
    assert!(markdown.contains("## Side by side"));
}

#[test]
fn what_is_no_result_is_named() {
    let results = Results::of_directory();
    let whole = fs::read_to_string(results.path("results/names-local.json")).unwrap();
    let newer = whole.replacen("\"format\":1", "\"format\":2", 1);
    let empty_directory = results.path("empty");
    fs::create_dir(&empty_directory).unwrap();
    for (name, text, why) in [
        ("truncated.json", &whole[..whole.len() / 2], "not a result of a measurement: EOF"),
        ("empty.json", "", "the file is empty"),
        ("other.json", "{\"format\": 1}", "missing field"),
        ("newer.json", &newer, "of format 2; this program reads up to format 1"),
        ("text.json", "hello", "not a result of a measurement"),
        ("absent.json", "-", "No such file"),
    ] {
        let file = results.page(name, text);
        if text == "-" {
            fs::remove_file(&file).unwrap();
        }
        let out = path(&results.directory, "never.html");
        let (status, printed, said) = report(&[&results.results(), file.to_str().unwrap(), "--out", &out]);
        assert_eq!((status, printed.as_str()), (2, ""), "{name}");
        assert!(said.contains(name) && said.contains(why), "{name}: {said}");
        assert!(!Path::new(&out).exists());
    }
    let (status, _, said) = report(&[empty_directory.to_str().unwrap()]);
    assert!(status == 2 && said.contains("no file in it ends in .json"), "{said}");
    assert_eq!(report(&[]).0, 2);
    let (status, _, said) = report(&[&results.results(), "--out", "report.pdf"]);
    assert!(status == 2 && said.contains("no form of a report ends so"), "{said}");
}
