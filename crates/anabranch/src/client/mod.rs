//! `anabranch client`: who is connected to the server that runs, and why not with more channels.

mod explain;
mod hint;
mod list;

use control::clients::Clients;

use crate::asking::Asking;
use crate::cli::ClientCommand;
use crate::print::{counted, duration, harmless, json, latency, print};
use crate::problem::Result;
use crate::{control_access, table};

/// Asks the server and prints what it says.
///
/// # Errors
/// No server runs, it may not be asked, or its answer is not understood.
pub(crate) fn run(command: &ClientCommand) -> Result<()> {
    let text = match command {
        ClientCommand::List(asking) => show(asking, json, list::render)?,
        ClientCommand::Explain(asking) => {
            show(asking, |clients| json(&explain::of(clients)), explain::render)?
        }
        ClientCommand::Hint(asking) => show(asking, |clients| json(&hint::of(clients)), hint::render)?,
    };
    print(&text)
}

fn show(
    asking: &Asking,
    for_programs: impl Fn(&Clients) -> Result<String>,
    for_people: impl Fn(&Clients) -> String,
) -> Result<String> {
    let access = control_access::find(&asking.state(), asking.control)?;
    let clients: Clients = control_client::get(&access, "/v1/clients")?;
    Ok(if asking.json { for_programs(&clients)? } else { for_people(&clients) })
}
