//! `anabranch bench model`: scale models of the documents' machines, built in network namespaces of this machine.

mod measure;
mod shell;
mod show;

use std::path::{Path, PathBuf};

use model::{BUILT_IN, Built, Model, Trouble, Which};

use super::arguments::{ModelCommand, ModelShow};
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// Carries out the command.
///
/// # Errors
/// The model is none, it cannot be built here, or something went wrong in it.
pub(super) fn run(command: &ModelCommand) -> Result<()> {
    match command {
        ModelCommand::List => print(&show::list(&built_in()?)),
        ModelCommand::Show(ModelShow { model, json: as_json }) => {
            let (model, _) = find(model)?;
            print(&if *as_json { json(&show::Shown::of(&model))? } else { show::one(&model) })
        }
        ModelCommand::Run(run) => measure::run(run),
        ModelCommand::Shell(shell) => shell::run(shell),
    }
}

/// The models that come with the program.
fn built_in() -> Result<Vec<Model>> {
    BUILT_IN.iter().map(|(name, text)| parse(name, text)).collect()
}

/// The model of a name, or of a file; and its description.
///
/// # Errors
/// There is none, or the file has none.
fn find(name: &str) -> Result<(Model, String)> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok((parse(name, text)?, (*text).to_owned()));
    }
    if !is_file(name) {
        let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let what = format!("there is no model {name}");
        let advice = format!("Models: {}; or give a file whose name ends with .toml.", names.join(", "));
        return Err(Problem::new(Cause::Settings, what, advice));
    }
    let text = std::fs::read_to_string(name)
        .map_err(|e| Problem::new(Cause::Settings, format!("{name} cannot be read: {e}"), ""))?;
    Ok((parse(name, &text)?, text))
}

fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn parse(place: &str, text: &str) -> Result<Model> {
    model::read(text)
        .map_err(|e| Problem::new(Cause::Settings, format!("{place}: {e}"), "docs/model.md has all keys."))
}

/// Builds a model, with a server in it.
///
/// # Errors
/// It cannot be built here.
fn build(model: &Model, which: Which) -> Result<(Built, PathBuf)> {
    let serving = |what: String| Problem::new(Cause::Serving, what, "");
    let program =
        std::env::current_exe().map_err(|e| serving(format!("this program's file is not known: {e}")))?;
    let mut number = [0; 16];
    getrandom::fill(&mut number).map_err(|e| serving(format!("no random numbers: {e}")))?;
    let password = format!("{:032x}", u128::from_le_bytes(number));
    let built =
        Built::build(model, which, &program, password).map_err(|trouble| cannot_be_built(model, trouble))?;
    Ok((built, program))
}

/// Why a model cannot be built, and what that means for its statements.
fn cannot_be_built(model: &Model, trouble: Trouble) -> Problem {
    let is_of_kernel = matches!(trouble, Trouble::Lacks { .. } | Trouble::NoNamespaces(_));
    let mut problem = Problem::from(trouble);
    let mut ids: Vec<&str> = model.statements.iter().map(|statement| statement.id.as_str()).collect();
    ids.dedup();
    if is_of_kernel && !ids.is_empty() {
        problem.advice += &format!("\n  Not to be tested here: {}", ids.join(", "));
    }
    problem
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        let what = trouble.to_string();
        let (cause, advice) = match trouble {
            Trouble::NotRoot => (Cause::Settings, "Use sudo. `list` and `show` need no root.".to_owned()),
            Trouble::NoProgram { package, .. } => (Cause::Settings, format!("apt-get install {package}")),
            Trouble::NoNamespaces(_) => (
                Cause::Serving,
                "A container without the capability to make them cannot build models.".to_owned(),
            ),
            Trouble::Lacks { .. } => {
                (Cause::Serving, "Use a kernel that has it, or a model without this limit.".to_owned())
            }
            Trouble::Forwarder { .. } => (Cause::Serving, String::new()),
            Trouble::Calibrating(_) => {
                (Cause::Serving, "`--uncalibrated` measures without a calibration.".to_owned())
            }
            Trouble::Server { advice, .. } => (Cause::Serving, advice),
            Trouble::NoClient(_) => {
                (Cause::Settings, "`anabranch bench model show --json` lists the machines.".to_owned())
            }
        };
        Self::new(cause, what, advice)
    }
}

#[cfg(test)]
mod tests {
    use model::Ability;

    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_named_with_the_statements_that_need_it() {
        let (model, _) = find("netapp-smb").unwrap();
        let lacks = Trouble::Lacks { ability: Ability::Htb, tool: "tc", said: "unknown".to_owned() };
        let said = cannot_be_built(&model, lacks).to_string();
        assert!(
            said.contains("CONFIG_NET_SCH_HTB") && said.contains("Not to be tested here: 2.07, 2.03, 2.10"),
            "{said}"
        );
        let said = cannot_be_built(&model, Trouble::NotRoot).to_string();
        assert!(!said.contains("Not to be tested"), "{said}");
    }
}
