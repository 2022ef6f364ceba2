//! Products as roles: the table, their flags in `up`, and their subcommands.

mod alone;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::Resettable};
use role::{Role, RoleDefinition};

use self::alone::AloneArgs;

/// The products of this binary. `up` runs all of them.
pub const ROLES: &[RoleDefinition] = &[];

/// The subcommand that runs all roles.
const UP: &str = "up";

/// Adds the flags of all roles and a flag `--no-NAME` to `up`, and a subcommand for each role.
pub(crate) fn add_to(command: Command, roles: &[RoleDefinition]) -> Command {
    let with_roles = |up: Command| {
        roles.iter().fold(up, |up, role| {
            let help = format!("Do not run the role {}", role.name);
            with_flags(up, role)
                .arg(Arg::new(off(role)).long(off(role)).help(help).action(ArgAction::SetTrue))
        })
    };
    let command = if roles.is_empty() { command } else { command.mut_subcommand(UP, with_roles) };
    roles.iter().fold(command, |command, role| {
        let alone = AloneArgs::augment_args(Command::new(role.name)).about(role.about);
        command.subcommand(with_flags(alone, role))
    })
}

/// Adds the flags of a role. A derived `augment_args` replaces the description of the command by the doc comment of the flags; this keeps it.
fn with_flags(command: Command, role: &RoleDefinition) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let command = (role.flags)(command.next_help_heading(role.name));
    command.about(Resettable::from(about)).long_about(Resettable::from(long_about))
}

/// The name of the flag that switches a role off.
fn off(role: &RoleDefinition) -> String {
    format!("no-{}", role.name)
}

/// The roles of `up` that are not switched off, configured by its flags. Other subcommands run none.
pub(crate) fn selected(roles: &[RoleDefinition], matches: &ArgMatches) -> Result<Vec<Role>> {
    let Some(up) = matches.subcommand_matches(UP) else { return Ok(Vec::new()) };
    let on = roles.iter().filter(|role| !up.get_flag(&off(role)));
    on.map(|role| configured(role, up)).collect()
}

/// The role that a subcommand runs alone, if it is one.
pub(crate) fn alone(roles: &[RoleDefinition], matches: &ArgMatches) -> Option<Result<Alone>> {
    let (name, flags) = matches.subcommand()?;
    let definition = roles.iter().find(|role| role.name == name)?;
    let parsed = AloneArgs::from_arg_matches(flags).map_err(Into::into);
    Some(parsed.and_then(|args| Ok(Alone { role: configured(definition, flags)?, args })))
}

fn configured(definition: &RoleDefinition, matches: &ArgMatches) -> Result<Role> {
    let role = (definition.configure)(matches).map_err(anyhow::Error::from_boxed);
    role.with_context(|| format!("cannot configure {}", definition.name))
}

/// A role that runs alone.
#[derive(Debug)]
pub(crate) struct Alone {
    role: Role,
    args: AloneArgs,
}

impl Alone {
    /// Runs the role until a signal arrives or it fails.
    pub(crate) async fn run(self) -> Result<()> {
        alone::run(&self.role, self.args).await
    }
}
