//! The command lines of `heapdrome man` and `heapdrome completions`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const MAN_EXAMPLES: &str = "\
Examples:
  heapdrome man
  heapdrome man race
  heapdrome man --dir ~/.local/share/man/man1
  heapdrome man --markdown

The output is the source of a manual page. To show it: heapdrome man race | man -l -";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  heapdrome completions bash
  heapdrome completions zsh
  heapdrome completions fish

Save the output where your shell searches for completions: for bash into
~/.local/share/bash-completion/completions/heapdrome, for fish into
~/.config/fish/completions/heapdrome.fish, for zsh into _heapdrome in a folder of $fpath.";

/// Arguments of `heapdrome man`.
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArguments {
    /// The subcommand, such as `race` or `paging random`; without it, heapdrome itself
    #[arg(value_name = "SUBCOMMAND", conflicts_with = "dir")]
    pub subcommand: Vec<String>,
    /// Write the pages of heapdrome and of every subcommand into this folder, which is created if
    /// missing
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Print the options of all commands as one page of Markdown
    #[arg(long, conflicts_with_all = ["subcommand", "dir"])]
    pub markdown: bool,
}

/// Arguments of `heapdrome completions`.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}
