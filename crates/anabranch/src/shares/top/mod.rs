//! `anabranch share top`: what is going on, between two looks, the costliest first.

mod clients;
mod costs;
mod terminal;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use control::activity::Activity;

use self::clients::Clients;
use self::terminal::{Key, Keys};
use crate::cli::ShareTop;
use crate::control_access::{self, Access};
use crate::print::{bytes, json, print};
use crate::problem::{Cause, Problem, Result};

/// Rows that are shown: what no terminal shows is not drawn.
const ROWS_MAX: usize = 200;
/// The width of a table that no terminal limits.
const WIDTH_MAX: usize = 1000;
/// Lines above the table, its head, the sum, and those below.
const OTHER_LINES: usize = 6;
/// Clears the terminal and goes to its top. ECMA-48 8.3.39, 8.3.21.
const CLEAR: &str = "\x1b[2J\x1b[H";
const HELP: &str = "\no: operations   c: clients   q: quit\n";

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Operations,
    Clients,
}

/// What a view knows at one moment; the rest is empty.
#[derive(Default)]
struct Look {
    activity: Activity,
    clients: Clients,
}

/// Looks until it is interrupted, or has looked as often as it should.
///
/// # Errors
/// The server cannot be asked.
pub(super) fn run(top: &ShareTop) -> Result<()> {
    let access = control_access::find(&top.asking.state(), top.asking.control)?;
    let live = std::io::stdout().is_terminal() && !top.asking.json;
    let mut left = top.count.or_else(|| (!live).then_some(1));
    let mut view = if top.clients { View::Clients } else { View::Operations };
    let keys = live.then(Keys::start).flatten();
    let mut before = look(&access, view)?;
    while left != Some(0) {
        match wait(keys.as_ref(), Duration::from_secs(top.interval)) {
            Some(Key::Quit) => break,
            Some(Key::Show(other)) if other != view => {
                view = other;
                before = look(&access, view)?;
                draw(CLEAR)?;
                print("One moment.\n")?;
                continue;
            }
            Some(Key::Show(_)) | None => {}
        }
        let now = look(&access, view)?;
        if top.asking.json {
            print(&in_json(view, &before, &now)?)?;
        } else {
            let (rows, width) = if live { terminal::size(OTHER_LINES) } else { (ROWS_MAX, WIDTH_MAX) };
            let text = render(view, &before, &now, (rows.min(ROWS_MAX), width));
            if live {
                draw(CLEAR)?;
            }
            print(&text)?;
            if keys.is_some() {
                print(HELP)?;
            }
        }
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Waits for a key, for this time at most.
fn wait(keys: Option<&Keys>, time: Duration) -> Option<Key> {
    let Some(keys) = keys else {
        std::thread::sleep(time);
        return None;
    };
    keys.wait(time)
}

fn draw(control: &str) -> Result<()> {
    let drawn = write!(std::io::stdout(), "{control}");
    drawn.map_err(|e| Problem::new(Cause::Asking, format!("cannot print: {e}"), ""))
}

fn look(access: &Access, view: View) -> Result<(Instant, Look)> {
    let seen = match view {
        View::Operations => {
            Look { activity: control_client::get(access, "/v1/activity")?, ..Look::default() }
        }
        View::Clients => Look { clients: clients::look(access)?, ..Look::default() },
    };
    Ok((Instant::now(), seen))
}

fn in_json(view: View, (then, before): &(Instant, Look), (now, after): &(Instant, Look)) -> Result<String> {
    let elapsed = now.duration_since(*then);
    match view {
        View::Operations => json(&costs::between(&before.activity, &after.activity, elapsed)),
        View::Clients => json(&clients::between(&before.clients, &after.clients, elapsed)),
    }
}

/// A table of so many rows and columns.
fn render(
    view: View,
    (then, before): &(Instant, Look),
    (now, after): &(Instant, Look),
    size: (usize, usize),
) -> String {
    let elapsed = now.duration_since(*then);
    match view {
        View::Operations => {
            costs::render(&costs::between(&before.activity, &after.activity, elapsed), elapsed, size)
        }
        View::Clients => {
            clients::render(&clients::between(&before.clients, &after.clients, elapsed), elapsed, size)
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is no less than 0")]
fn per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate as u64))
}
