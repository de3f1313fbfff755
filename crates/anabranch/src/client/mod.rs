//! `anabranch client`: who is connected to the server that runs, and why not with more channels.

mod explain;
mod hint;
mod list;

use control::clients::Clients;
use control::files::Disconnected;
use control_client::path_part;

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
        ClientCommand::Disconnect { client, asking } => disconnect(client, asking)?,
        ClientCommand::Hint(asking) => show(asking, |clients| json(&hint::of(clients)), hint::render)?,
    };
    print(&text)
}

fn disconnect(client: &str, asking: &Asking) -> Result<String> {
    let access = control_access::find(&asking.state(), asking.control)?;
    let path = format!("/v1/clients/{}", path_part(client));
    let ended: Disconnected = control_client::call(&access, "DELETE", &path, None::<&()>)?;
    if asking.json {
        return json(&ended);
    }
    let ended = [
        counted(ended.smb_sessions, "SMB session"),
        counted(ended.nfs_clients, "NFSv4 client"),
        counted(ended.nfs_connections, "NFS connection"),
    ];
    Ok(format!("{client} was disconnected: {}.\n", ended.join(", ")))
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
