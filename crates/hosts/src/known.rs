//! The hosts that are known, and where they keep their configuration. Sources: the documentation of each host.

use std::path::{Path, PathBuf};

/// A program that starts MCP servers by a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Windsurf,
    Zed,
    Goose,
    /// `.mcp.json` of a project.
    Project,
}

/// How a host writes its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON with comments; the member that holds the servers.
    Json(&'static str),
    Yaml,
}

/// The folders in which configuration is looked for.
#[derive(Clone, Debug)]
pub struct Places {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or `.config` in the home folder.
    pub config: PathBuf,
    /// The folder of the project.
    pub project: PathBuf,
}

impl Host {
    pub const ALL: [Self; 8] =
        [Self::ClaudeDesktop, Self::ClaudeCode, Self::Cursor, Self::VsCode, Self::Windsurf, Self::Zed, Self::Goose, Self::Project];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Goose => "goose",
            Self::Project => "project",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Goose => "Goose",
            Self::Project => "this project (.mcp.json)",
        }
    }

    /// Where its configuration may be, the most likely place first.
    pub fn files(self, places: &Places) -> Vec<PathBuf> {
        let Places { home, config, project } = places;
        let support = home.join("Library/Application Support");
        match self {
            Self::ClaudeDesktop => {
                vec![support.join("Claude/claude_desktop_config.json"), config.join("Claude/claude_desktop_config.json")]
            }
            Self::ClaudeCode => vec![home.join(".claude.json")],
            Self::Cursor => vec![project.join(".cursor/mcp.json"), home.join(".cursor/mcp.json")],
            Self::VsCode => {
                vec![project.join(".vscode/mcp.json"), support.join("Code/User/mcp.json"), config.join("Code/User/mcp.json")]
            }
            Self::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
            Self::Zed => vec![config.join("zed/settings.json"), home.join(".zed/settings.json")],
            Self::Goose => vec![config.join("goose/config.yaml")],
            Self::Project => vec![project.join(".mcp.json"), project.join("mcp.json")],
        }
    }

    /// The configuration that is there.
    pub fn found(self, places: &Places) -> Option<PathBuf> {
        self.files(places).into_iter().find(|file| file.is_file())
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::VsCode => Format::Json("servers"),
            Self::Zed => Format::Json("context_servers"),
            Self::Goose => Format::Yaml,
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor | Self::Windsurf | Self::Project => Format::Json("mcpServers"),
        }
    }

    /// Whether a file of this host has servers of single projects besides its own.
    pub(crate) fn has_projects(self) -> bool {
        self == Self::ClaudeCode
    }

    /// The host of a file that was named by its path.
    pub fn of_file(file: &Path) -> Self {
        let text = file.to_string_lossy();
        match () {
            () if text.ends_with(".yaml") || text.ends_with(".yml") => Self::Goose,
            () if text.contains(".vscode") || text.contains("Code/User") => Self::VsCode,
            () if text.ends_with("zed/settings.json") => Self::Zed,
            () if text.ends_with(".claude.json") => Self::ClaudeCode,
            () => Self::Project,
        }
    }
}
