//! The web console in a real browser, beside a real client.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::chromium::{Chromium, Screen, Visit};
use crate::needs;
use crate::server::{Server, flags, path, program};

mod data;

const WIDE: Screen = Screen { width: 1440, height: 900, dark: false };
const PHONE: Screen = Screen { width: 390, height: 844, dark: false };
const ENTER: (&str, u32) = ("Enter", 13);
const TAB: (&str, u32) = ("Tab", 9);
const ESCAPE: (&str, u32) = ("Escape", 27);
/// How long the page may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of the first page with all that it loads.
const FIRST_PAGE_BYTES_MAX: u64 = 150_000;

/// A server with a share and a user, and its tokens.
struct Machine {
    directory: TempDir,
    server: Server,
}

impl Machine {
    fn start() -> Self {
        Self::start_with(|_| Vec::new())
    }

    /// With more arguments, which may name what is in the directory.
    fn start_with(more: impl Fn(&TempDir) -> Vec<String>) -> Self {
        let directory = TempDir::new().unwrap();
        let flags = [flags(&directory), more(&directory)].concat();
        let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        fs::create_dir(directory.path().join("projects")).unwrap();
        Self { directory, server }
    }

    fn run(&self, arguments: &[&str]) -> String {
        let state = path(&self.directory, "state");
        let done = program(arguments).args(["--state", &state]).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn token(&self, name: &str, scope: &str) -> String {
        let made: Value =
            serde_json::from_str(&self.run(&["token", "create", name, "--scope", scope, "--json"])).unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    fn url(&self) -> String {
        format!("http://{}/", self.server.address("control"))
    }
}

/// A page of the console in a browser.
struct Console {
    browser: Chromium,
    page: Visit,
}

impl Console {
    fn open(machine: &Machine, screen: Screen, language: &str) -> Self {
        Self::open_at(&machine.url(), screen, language)
    }

    fn open_at(url: &str, screen: Screen, language: &str) -> Self {
        let mut browser = Chromium::start();
        let page = browser.open(url, screen, language);
        let mut console = Self { browser, page };
        console.wait_for("an h1", "document.querySelector('h1') !== null");
        console.value(
            "window.violations = []; \
             document.addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective)); 1",
        );
        console
    }

    fn value(&mut self, expression: &str) -> Value {
        self.browser.evaluate(&self.page, expression)
    }

    fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    fn wait_for(&mut self, what: &str, condition: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(condition) != true {
            assert!(Instant::now() < deadline, "{what}: {}", self.text("document.body.innerText"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until an element has these words.
    fn wait_for_text(&mut self, selector: &str, words: &str) {
        let (selector, words) = (json!(selector), json!(words));
        let condition = format!(
            "[...document.querySelectorAll({selector})].some((of) => of.innerText.includes({words}))"
        );
        self.wait_for(&format!("{words} in {selector}"), &condition);
    }

    fn count(&mut self, selector: &str) -> u64 {
        self.value(&format!("document.querySelectorAll({}).length", json!(selector))).as_u64().unwrap()
    }

    /// Presses the button with this name in this part of the page.
    fn click(&mut self, within: &str, name: &str) {
        let (within, name) = (json!(within), json!(name));
        let button = format!(
            "[...document.querySelectorAll({within} + ' button')].find((of) => of.innerText.trim() === {name} && !of.disabled && of.checkVisibility())"
        );
        self.wait_for(&format!("the button {name} in {within}"), &format!("{button} !== undefined"));
        self.value(&format!("{button}.click(); 1"));
    }

    /// Fills in a field of the dialog, or of the page.
    fn fill(&mut self, name: &str, value: &str) {
        let field = json!(format!("[name={name}]"));
        self.wait_for(&format!("the field {name}"), &format!("document.querySelector({field}) !== null"));
        self.value(&format!(
            "document.querySelector({field}).focus(); document.querySelector({field}).select?.(); 1"
        ));
        self.browser.type_text(&self.page, value);
        assert_eq!(self.filled(name), value, "{name}");
    }

    /// Chooses a value of a field that has some.
    fn choose(&mut self, name: &str, value: &str) {
        let (field, chosen) = (json!(format!("[name={name}]")), json!(value));
        self.value(&format!("document.querySelector({field}).value = {chosen}; 1"));
        assert_eq!(self.filled(name), value, "{name}");
    }

    fn filled(&mut self, name: &str) -> String {
        self.text(&format!("document.querySelector('[name={name}]').value"))
    }

    fn go(&mut self, page: &str, heading: &str) {
        self.value(&format!("location.hash = {}; 1", json!(format!("#/{page}"))));
        self.wait_for_text("h1", heading);
    }

    fn sign_in(&mut self, token: &str) {
        self.fill("token", token);
        self.browser.press(&self.page, ENTER);
        self.wait_for("the pages", "document.querySelector('nav') !== null");
    }

    /// The page is not wider than the screen.
    fn check_that_it_fits(&mut self, what: &str, screen: Screen) {
        let width = self.value("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(width <= u64::from(screen.width), "{what}: {width} pixels of {}", screen.width);
    }

    /// The policy of the page held, and nothing has failed but calls that the server refused.
    fn check_that_all_is_well(&mut self) {
        assert_eq!(self.value("violations"), json!([]));
        let of_calls = |error: &String| error.contains("the server responded with a status of 4");
        let errors: Vec<_> = self.browser.errors().into_iter().filter(|error| !of_calls(error)).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// A client that somebody types commands into.
struct Smbclient {
    child: Child,
    /// What it says goes there.
    said: PathBuf,
}

impl Smbclient {
    fn start(machine: &Machine, share: &str) -> Option<Self> {
        let (host, port) = machine.server.address("smb").rsplit_once(':').unwrap();
        let mut command = Command::new("smbclient");
        command.args([&format!("//{host}/{share}"), "-p", port, "-U", "anna%hush-hush"]);
        let said = machine.directory.path().join("said");
        let log = fs::File::create(&said).unwrap();
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        needs::installed("smbclient", command.spawn()).map(|child| Self { child, said })
    }

    fn say(&mut self, commands: &str) {
        self.child.stdin.as_mut().unwrap().write_all(commands.as_bytes()).unwrap();
    }

    /// Waits until it says that it has lost its connection.
    fn has_lost_its_connection(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let says = |of: &Self| fs::read_to_string(&of.said).unwrap().contains("NT_STATUS_CONNECTION_");
        while Instant::now() < deadline && !says(self) {
            self.say("ls\n");
            std::thread::sleep(Duration::from_millis(100));
        }
        says(self)
    }
}

impl Drop for Smbclient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_share_is_made_used_changed_and_its_client_disconnected() {
    let mut machine = Machine::start();
    let token = machine.token("admin", "all");
    let mut console = Console::open(&machine, WIDE, "en-US");
    let bytes = console.browser.received();
    assert!((10_000..FIRST_PAGE_BYTES_MAX).contains(&bytes), "the first page has {bytes} bytes");
    refuse_a_wrong_token(&mut console);
    console.sign_in(&token);
    console.wait_for_text(".health", "All is well");
    assert_eq!(console.text("document.title"), "Overview \u{2013} Anabranch");

    create_a_share(&mut console, &machine);
    let Some(mut client) = Smbclient::start(&machine, "projects") else { return };
    client.say("put /etc/hostname a\n");
    console.go("clients", "Clients");
    console.wait_for_text("article", "anna");
    console.wait_for_text("article", "SMB 3.1.1");
    console.wait_for_text("article summary", "Why there are not more");
    console.value("document.querySelector('article summary').click(); 1");
    console.wait_for_text(
        "article .findings",
        "The client asked for multichannel, but never for the server's addresses.",
    );

    change_what_nfs_needs(&mut console, &machine);
    change_its_plan(&mut console, &mut client);
    client.say(&"ls\n".repeat(2000));
    let waits = "section[aria-label='What waited for which limit'] tbody";
    console.wait_for_text(waits, "iops");
    console.go("advice", "Advice");
    console.fill("seconds", "4");
    console.click("#content form", "Watch");
    console.wait_for_text(".advices", "rule");
    console.click("#content .try", "Apply and measure");
    console.wait_for_text("#content table", "Calls per second");
    let plan = |machine: &Machine| {
        machine.run(&["share", "show", "projects"]).contains("custom iops=20 metadata-iops=20")
    };
    assert!(!plan(&machine), "it is changed until somebody decides");
    console.click("#content .form-actions", "Revert");
    console.wait_for_text("#messages", "The change was reverted.");
    assert!(plan(&machine), "as it was");

    console.go("clients", "Clients");
    console.click("article", "Disconnect");
    console.click("dialog", "Disconnect");
    console.wait_for_text("#messages", "was disconnected");
    assert!(client.has_lost_its_connection());
    console.wait_for_text("#content", "No client is connected.");

    console.go("log", "Log");
    console.wait_for_text(".log", "signed in to the console");
    console.check_that_all_is_well();
    console.value(
        "try { const script = document.createElement('script'); \
         script.src = 'data:text/javascript,window.intruder=1'; document.head.append(script); } catch {} 1",
    );
    console.wait_for("the policy to stop a script", "violations.length > 0");
    assert_eq!(console.value("window.intruder === undefined"), true);
    assert_eq!(machine.server.end_with("TERM"), Some(0));
}

fn refuse_a_wrong_token(console: &mut Console) {
    console.fill("token", "wrong");
    let begun = Instant::now();
    console.browser.press(&console.page, ENTER);
    console.wait_for_text("[role=alert]", "This is not a token of this server");
    assert!(begun.elapsed() >= Duration::from_millis(250), "a failure is answered late");
    assert_eq!(console.filled("token"), "wrong", "what was typed stays");
}

fn create_a_share(console: &mut Console, machine: &Machine) {
    console.go("shares", "Shares");
    console.click("#content", "Create share");
    console.fill("name", "projects");
    let missing = path(&machine.directory, "missing");
    console.fill("directory", &missing);
    console.click("dialog form", "Create");
    console.wait_for_text("dialog [role=alert]", "missing");
    assert_eq!([console.filled("name"), console.filled("directory")], ["projects".to_owned(), missing]);
    console.fill("directory", &path(&machine.directory, "projects"));
    console.click("dialog form", "Create");
    console.wait_for_text("#messages", "The share projects was created.");
    console.wait_for("the dialog to close", "document.querySelector('dialog') === null");
    console.wait_for_text("#content tbody", "projects");
    assert!(machine.run(&["share", "list"]).contains("projects"));
}

fn change_what_nfs_needs(console: &mut Console, machine: &Machine) {
    console.go("shares/projects", "projects");
    console.click("#content", "Change");
    assert_eq!(console.filled("nfs_security"), "sys krb5 krb5i krb5p");
    console.fill("nfs_security", "krb6");
    console.click("dialog form", "Save");
    console.wait_for_text("dialog [role=alert]", "krb6");
    console.fill("nfs_security", "krb5i krb5p");
    console.choose("nfs_groups", "server");
    console.click("dialog form", "Save");
    console.wait_for_text("#messages", "The share projects was changed.");
    console.wait_for_text("#content", "krb5i, krb5p");
    console.wait_for_text("#content", "as the server says");
    let shown = machine.run(&["share", "show", "projects"]);
    assert!(
        shown.contains("NFS with krb5i or krb5p") && shown.contains("NFS groups by the server"),
        "{shown}"
    );
}

fn change_its_plan(console: &mut Console, client: &mut Smbclient) {
    console.go("shares/projects", "projects");
    console.click("#content", "Change plan");
    console.fill("plan", "custom iops=quick");
    console.click("dialog form", "Save");
    console.wait_for_text("dialog [role=alert]", "iops");
    assert_eq!(console.filled("plan"), "custom iops=quick");
    console.fill("plan", "custom iops=20 metadata-iops=20");
    console.fill("seconds", "3");
    console.click("dialog fieldset", "Record and try");
    console.wait_for_text("dialog .outcome", "Recording");
    client.say(&"ls\n".repeat(100));
    console.wait_for_text("dialog .outcome", "would have waited");
    console.click("dialog form", "Save");
    console.wait_for_text("#messages", "The share projects was changed.");
    console.wait_for_text("#content code", "custom iops=20 metadata-iops=20");
}

#[test]
fn who_may_only_look_sees_no_buttons_and_is_refused_by_the_server() {
    let machine = Machine::start();
    let token = machine.token("look", "read");
    let mut console = Console::open(&machine, WIDE, "en-US");
    console.sign_in(&token);
    for (page, heading) in
        [("shares", "Shares"), ("shares/data", "data"), ("users", "Users"), ("clients", "Clients")]
    {
        console.go(page, heading);
        console.wait_for(page, "document.querySelector('#content .card') !== null");
        let buttons = console
            .value("[...document.querySelectorAll('#content button')].filter((of) => !of.hidden).length");
        assert_eq!(buttons, 0, "{page}");
    }
    assert_eq!(console.count("nav a[href='#/tokens'], nav a[href='#/log']"), 0);
    console.go("tokens", "Tokens");
    console.wait_for_text("#content", "This page is for tokens with the scope all.");
    let refused = "(async () => { \
        const { csrf } = await (await fetch('/v1/sign-in')).json(); \
        const answer = await fetch('/v1/shares/data', { method: 'DELETE', headers: { 'X-CSRF-Token': csrf } }); \
        return `${answer.status} ${(await answer.json()).error}`; })()";
    assert_eq!(console.text(refused), "403 scope");
    assert_eq!(console.text("document.cookie"), "", "no script sees the cookie");
    console.check_that_all_is_well();

    machine.run(&["token", "remove", "look"]);
    console.wait_for_text("h1", "Anabranch");
    console.wait_for_text("[role=status]", "You are signed out");
    console.sign_in(&machine.token("again", "shares"));
    console.go("shares", "Shares");
    console.wait_for_text("#content button", "Create share");
    console.click(".who", "Sign out");
    console.wait_for_text("[role=status]", "You are signed out");
    let answer = console.value("fetch('/v1/sign-in').then((answer) => answer.status)");
    assert_eq!(answer, 401);
}

/// All pages fit a phone and a wide screen, with English texts and with German ones, which are longer.
#[test]
fn pages_fit_and_are_worked_with_by_keyboard_alone() {
    let machine = Machine::start();
    let token = machine.token("admin", "all");
    for (screen, language, headings) in [
        (
            PHONE,
            "en-US",
            ["Overview", "Shares", "data", "Clients", "Open files", "Users", "Advice", "Tokens", "Log"],
        ),
        (
            Screen { dark: true, ..PHONE },
            "de-DE",
            [
                "\u{dc}bersicht",
                "Freigaben",
                "data",
                "Clients",
                "Offene Dateien",
                "Benutzer",
                "Ratschl\u{e4}ge",
                "Token",
                "Protokoll",
            ],
        ),
        (
            WIDE,
            "de-DE",
            [
                "\u{dc}bersicht",
                "Freigaben",
                "data",
                "Clients",
                "Offene Dateien",
                "Benutzer",
                "Ratschl\u{e4}ge",
                "Token",
                "Protokoll",
            ],
        ),
    ] {
        let mut console = Console::open(&machine, screen, language);
        console.sign_in(&token);
        assert_eq!(console.text("document.documentElement.lang"), &language[..2]);
        let pages =
            ["overview", "shares", "shares/data", "clients", "files", "users", "advice", "tokens", "log"];
        for (page, heading) in pages.into_iter().zip(headings) {
            console.go(page, heading);
            console.wait_for(page, "document.querySelector('#content .card, #content .tile') !== null");
            console.check_that_it_fits(&format!("{page} in {language}"), screen);
            assert_eq!(
                console.text("document.activeElement.tagName"),
                "H1",
                "{page}: the focus is at the heading"
            );
            for (what, selector) in [
                ("a table without a caption", "table:not(:has(caption))"),
                ("a head without a scope", "th:not([scope])"),
                ("a field without a label", "input:not([id]), select:not([id]), textarea:not([id])"),
                ("more than one main part", "main ~ main"),
            ] {
                assert_eq!(console.count(selector), 0, "{page}: {what}");
            }
            let unlabelled = "[...document.querySelectorAll('button')].filter((of) => !(of.innerText.trim() || of.ariaLabel)).length";
            assert_eq!(console.value(unlabelled), 0, "{page}: a button without a name");
        }
        console.check_that_all_is_well();
    }
    by_keyboard(&mut Console::open(&machine, WIDE, "en-US"), &token);
}

fn by_keyboard(console: &mut Console, token: &str) {
    console.sign_in(token);
    console.go("shares", "Shares");
    console.browser.press(&console.page, TAB);
    assert_eq!(console.text("document.activeElement.innerText.trim()"), "Create share");
    console.browser.press(&console.page, ENTER);
    console.wait_for("the dialog", "document.querySelector('dialog[open]') !== null");
    assert_eq!(console.text("document.activeElement.name"), "name", "the focus is in the first field");
    console.browser.press(&console.page, ESCAPE);
    console.wait_for("the dialog to close", "document.querySelector('dialog') === null");
    assert_eq!(console.text("document.activeElement.innerText.trim()"), "Create share", "and back");
}
