//! SDKs that are compiled into a server: Go writes the modules into the executable, Rust the paths of the crates that can panic.

use super::sdk;
use mcproof_client::Program;
use mcproof_record::Sdk;
use memchr::memmem;
use object::read::{Object as _, ObjectSection as _, ReadCache, ReadRef as _};
use std::fs;
use std::path::Path;

/// What servers in Go are made with.
const GO_MODULES: [(&str, &str); 2] = [("github.com/modelcontextprotocol/go-sdk", "Go SDK"), ("github.com/mark3labs/mcp-go", "mcp-go")];

/// The sections in which Go tells what it has built, by the format of the executable.
const GO_SECTIONS: [&str; 2] = [".go.buildinfo", "__go_buildinfo"];

/// The sections of constants, in which Rust keeps the paths.
const CONSTANTS: [&str; 3] = [".rodata", "__const", ".rdata"];

/// Bytes that are read of one section.
const MOST: u64 = 16 << 20;

/// Commands of mcproof that pass on or play back what other servers say, although an SDK is compiled into it.
const RELAYS: [&str; 2] = ["proxy", "mock"];

pub(super) fn sdks(program: &Program) -> Vec<Sdk> {
    if is_relay(program) { Vec::new() } else { read(&program.executable).into_iter().collect() }
}

fn is_relay(program: &Program) -> bool {
    let is_mcproof = program.executable.file_stem().is_some_and(|name| name == "mcproof");
    let mut own = program.arguments.iter().skip(1).take_while(|argument| *argument != "--");
    is_mcproof && own.any(|argument| RELAYS.contains(&argument.as_str()))
}

fn read(file: &Path) -> Option<Sdk> {
    let cache = ReadCache::new(fs::File::open(file).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let bytes = |names: &[&str]| {
        let section = names.iter().find_map(|name| object.section_by_name(name))?;
        let (offset, size) = section.file_range()?;
        (&cache).read_bytes_at(offset, size.min(MOST)).ok()
    };
    match bytes(&GO_SECTIONS) {
        Some(section) => go_sdk(section),
        None => rust_sdk(bytes(&CONSTANTS)?),
    }
}

/// From the build information of Go 1.18 and later (`debug/buildinfo`): 32 bytes that begin with a signature, the version of Go, and the
/// modules in lines, each text behind its length.
fn go_sdk(section: &[u8]) -> Option<Sdk> {
    /// Tells that the texts follow, in place of pointers to them.
    const INLINE: u8 = 2;
    const HEAD: usize = 32;
    /// What stands on either side of the lines.
    const FENCE: usize = 16;
    let start = memmem::find(section, b"\xff Go buildinf:")?;
    let head = section.get(start..start + HEAD)?;
    let (_, rest) = text(section.get(start + HEAD..)?).filter(|_| head[15] & INLINE != 0)?;
    let (modules, _) = text(rest)?;
    let modules = String::from_utf8_lossy(modules.get(FENCE..modules.len().checked_sub(FENCE)?)?);
    let mut lines = modules.lines().peekable();
    while let Some(line) = lines.next() {
        let mut words = line.split('\t');
        let known = if words.next() == Some("dep") { words.next() } else { None };
        let known = known.and_then(|module| GO_MODULES.into_iter().find(|(known, _)| *known == module));
        let is_replaced = lines.peek().is_some_and(|next| next.starts_with("=>"));
        if let (Some((module, name)), Some(version), false) = (known, words.next(), is_replaced) {
            return Some(sdk(name, "Go", module, version.trim_start_matches('v')));
        }
    }
    None
}

/// A text behind its length as a varint, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0_usize;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return bytes.get(index + 1..)?.split_at_checked(length);
        }
    }
    None
}

/// From the folder that Cargo unpacks the crate into. The part of it that makes servers is in no program that is only a client.
fn rust_sdk(constants: &[u8]) -> Option<Sdk> {
    const CRATE: &[u8] = b"/rmcp-";
    const OF_SERVERS: [&[u8]; 2] = [b"/src/service/server", b"/src/handler/server"];
    let version_at = |start: usize| {
        let rest = &constants[start + CRATE.len()..];
        let (version, file) = rest.split_at(rest.iter().take(32).position(|byte| *byte == b'/')?);
        let version = std::str::from_utf8(version).ok()?;
        let is_of_a_server = OF_SERVERS.iter().any(|part| file.starts_with(part));
        (is_of_a_server && version.starts_with(|first: char| first.is_ascii_digit())).then(|| sdk("Rust SDK", "crates.io", "rmcp", version))
    };
    memmem::find_iter(constants, CRATE).find_map(version_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `debug/buildinfo` of Go 1.22 reads it.
    fn build_info(lines: &str) -> Vec<u8> {
        let mut bytes = b"\0\0\0\0\xff Go buildinf:\x08\x02".to_vec();
        bytes.extend([0; 16]);
        let modules = [&[b'0'; 16][..], lines.as_bytes(), &[b'1'; 16]].concat();
        for text in [b"go1.26.1", modules.as_slice()] {
            let (low, high) = (text.len() & 0x7f, text.len() >> 7);
            bytes.extend([u8::try_from(low).unwrap() | 0x80, u8::try_from(high).unwrap()]);
            bytes.extend(text);
        }
        bytes
    }

    fn check(found: Option<Sdk>, expected: Option<&str>) {
        let found = found.map(|sdk| format!("{} {}", sdk.package, sdk.version));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn go_tells_the_module_and_its_version_unless_it_was_replaced() {
        let before = "path\texample.com/server\nmod\texample.com/server\t(devel)\t\ndep\tgithub.com/spf13/cobra\tv1.9.1\th1:x=\n";
        let sdk = "dep\tgithub.com/modelcontextprotocol/go-sdk\tv1.8.0\th1:KIvahhY=\n";
        let after = "build\t-compiler=gc\n";
        let expected = Some("Go:github.com/modelcontextprotocol/go-sdk 1.8.0");
        check(go_sdk(&build_info(&[before, sdk, after].concat())), expected);
        check(
            go_sdk(&build_info(&["dep\tgithub.com/mark3labs/mcp-go\tv0.43.2\t\n", after].concat())),
            Some("Go:github.com/mark3labs/mcp-go 0.43.2"),
        );
        check(go_sdk(&build_info(&[sdk, "=>\t../go-sdk\t(devel)\t\n", after].concat())), None);
        check(go_sdk(&build_info(&[before, after].concat())), None);
        let whole = build_info(&[before, sdk, after].concat());
        for length in 0..whole.len() {
            check(go_sdk(&whole[..length]), None);
        }
    }

    #[test]
    fn rust_tells_the_version_in_the_paths_of_the_crate() {
        let before = "x/registry/src/index.crates.io-1949/rmcp-macros-0.1.0/src/lib.rs";
        let path = |file: &str| format!("{before}/registry/src/index.crates.io-1949/rmcp-0.9.0/src/{file}.rs").into_bytes();
        let server = path("handler/server");
        check(rust_sdk(&server), Some("crates.io:rmcp 0.9.0"));
        check(rust_sdk(&[path("service"), path("service/server/handshake")].concat()), Some("crates.io:rmcp 0.9.0"));
        check(rust_sdk(&[path("service"), path("service/client"), path("handler/client")].concat()), None);
        for length in 0..server.len() - ".rs".len() {
            check(rust_sdk(&server[..length]), None);
        }
        check(rust_sdk(b"nothing"), None);
    }

    #[test]
    fn what_passes_on_another_server_is_not_made_with_an_sdk() {
        let is_relay = |executable: &str, arguments: &str| {
            let arguments = arguments.split(' ').map(str::to_owned).collect();
            is_relay(&Program { executable: executable.into(), arguments, ..Program::default() })
        };
        assert!(is_relay("/usr/bin/mcproof", "mcproof proxy -- python server.py"));
        assert!(is_relay("/usr/bin/mcproof", "mcproof --no-color mock session.mcptrace"));
        assert!(!is_relay("/usr/bin/mcproof", "mcproof demo tracker"));
        assert!(!is_relay("/usr/bin/mcproof", "mcproof demo tracker -- proxy"));
        assert!(!is_relay("/usr/bin/server", "server proxy"));
    }

    #[test]
    fn this_very_program_is_read_and_is_no_server_in_go() {
        assert_ne!(read(&std::env::current_exe().unwrap()).map(|sdk| sdk.name).as_deref(), Some("Go SDK"));
        check(read(Path::new("/nothing")), None);
    }
}
