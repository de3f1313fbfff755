//! `anabranch token`: who may ask the control address, and for what.

use std::time::SystemTime;

use control::Administration as _;
use control::tokens::{MadeToken, NewToken, TokenInfo, Tokens};
use control_client::path_part;

use crate::administrator::{Administrator, Intent};
use crate::cli::{TokenCommand, TokenCreate};
use crate::print::{duration, json, print};
use crate::problem::Result;
use crate::table;

const CALL: &str = "/v1/tokens";

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &TokenCommand) -> Result<()> {
    match command {
        TokenCommand::Create(TokenCreate { name, scope, asking }) => {
            let administrator = Administrator::find(asking, Intent::Change)?;
            let new = NewToken { name: name.clone(), scope: (*scope).into() };
            let made: MadeToken =
                administrator.call(("POST", CALL), Some(&new), |here| here.make_token(new.clone()))?;
            print(&if asking.json { json(&made)? } else { tell_made(&made) })
        }
        TokenCommand::List(asking) => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let tokens = administrator.call(("GET", CALL), None::<&()>, |here| here.tokens())?;
            print(&if asking.json { json(&tokens)? } else { render(&tokens) })
        }
        TokenCommand::Remove { name, asking } => {
            let administrator = Administrator::find(asking, Intent::Change)?;
            let path = format!("{CALL}/{}", path_part(name));
            let token: TokenInfo =
                administrator.call(("DELETE", &path), None::<&()>, |here| here.remove_token(name))?;
            let text = format!("The token {} was revoked.\n", token.name);
            print(&if asking.json { json(&token)? } else { text })
        }
    }
}

fn tell_made(MadeToken { name, scope, token, .. }: &MadeToken) -> String {
    format!("Created the token {name} ({scope}). It is shown only this once:\n{token}\n")
}

fn render(tokens: &Tokens) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let row = |token: &TokenInfo| {
        let age = duration(now.saturating_sub(token.made));
        [token.name.clone(), token.scope.to_string(), format!("{age} ago")]
    };
    let rows: Vec<_> = tokens.tokens.iter().map(row).collect();
    table::render(["TOKEN", "SCOPE", "CREATED"], &rows)
}
