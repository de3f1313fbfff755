//! `anabranch config` and `anabranch reload`: the configuration of the server that runs, or of a file.

use control::configuration::{Configuration, Reload};

use crate::asking::Asking;
use crate::cli::{ConfigCommand, ConfigShow};
use crate::place;
use crate::print::{counted, harmless, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::{config, control_access, effective};

const CALL: &str = "/v1/configuration";

/// Carries out the command.
///
/// # Errors
/// The file has mistakes, or the server cannot be asked.
pub(crate) fn run(command: &ConfigCommand) -> Result<()> {
    let ConfigCommand::Show(ConfigShow { config, asking }) = command;
    let configuration = match config {
        Some(file) => {
            let given = config::read(file);
            let shown = effective::of(&given);
            place::problem(given.from.mistakes).map_or(Ok(shown), Err)?
        }
        None => {
            let access = control_access::find(&asking.state(), asking.control)?;
            control_client::get::<Configuration>(&access, CALL)?
        }
    };
    print(&if asking.json { json(&configuration)? } else { render(&configuration) })
}

fn render(configuration: &Configuration) -> String {
    let mut text = effective::render(configuration);
    if let Some(reload) = &configuration.reload {
        let state = tell(reload);
        let lines = state.lines().map(|line| format!("# {line}\n"));
        text = format!("{}\n{text}", lines.collect::<String>());
    }
    text
}

/// What became of the last attempt to read the configuration again.
fn tell(reload: &Reload) -> String {
    if reload.last.is_none() {
        return "The server has read its configuration once, when it started.\n".to_owned();
    }
    let mut text = if reload.last_succeeded {
        "The configuration was read again.\n".to_owned()
    } else {
        let mistakes = counted(reload.mistakes.len(), "mistake");
        format!("The configuration is unchanged: it has {mistakes}.\n")
    };
    for mistake in &reload.mistakes {
        text += &told(mistake);
    }
    if !reload.at_next_start.is_empty() {
        text +=
            &format!("These changes take effect at the next start: {}\n", reload.at_next_start.join(", "));
    }
    text
}

fn told(mistake: &control::configuration::ConfigurationMistake) -> String {
    let place = match (&mistake.file, mistake.line) {
        (Some(file), Some(line)) => format!("{file} line {line}: "),
        _ => String::new(),
    };
    let advice =
        if mistake.advice.is_empty() { String::new() } else { format!("  {}\n", harmless(&mistake.advice)) };
    format!("{}{}\n{advice}", harmless(&place), harmless(&mistake.message))
}

/// Has the server that runs read its configuration again.
///
/// # Errors
/// Something is wrong with the configuration, and nothing has changed; or the server cannot be asked.
pub(crate) fn reload(asking: &Asking) -> Result<()> {
    let access = control_access::find(&asking.state(), asking.control)?;
    let path = format!("{CALL}/reload");
    let refusal = match control_client::post_patiently::<Reload>(&access, &path) {
        Ok(reload) => {
            return print(&if asking.json { json(&reload)? } else { tell(&reload) });
        }
        Err(control_client::Error::Refused(refusal)) if refusal.error == "invalid" => refusal,
        Err(error) => return Err(error.into()),
    };
    let shown: Configuration = control_client::get(&access, CALL)?;
    let Some(reload) = shown.reload.filter(|reload| !reload.last_succeeded) else {
        return Err(control_client::Error::Refused(refusal).into());
    };
    if asking.json {
        print(&json(&reload)?)?;
    }
    let listed = reload.mistakes.iter().map(|mistake| format!("\n{}", told(mistake).trim_end()));
    let what =
        format!("the configuration is unchanged, because it has mistakes:{}", listed.collect::<String>());
    Err(Problem::new(Cause::Refused, what, "The server goes on with the configuration before."))
}
