#!/bin/sh
# Installs mcproof @VERSION@: downloads the archive for this platform, verifies its SHA-256 checksum, and copies the program to a
# directory. Changes nothing else: no shell profile, no PATH.
set -eu

VERSION='@VERSION@'
RELEASES='@RELEASES@'

usage() {
    cat <<EOF
Install mcproof $VERSION.

Usage: install.sh [--to DIRECTORY] [--from URL] [--target TARGET]

Options:
  --to DIRECTORY   Directory for the program [default: ~/.local/bin]
  --from URL       Directory with the archives, such as a mirror [default: $RELEASES]
  --target TARGET  Archive to install, such as x86_64-unknown-linux-musl [default: the one for this machine]
  --help           Print this help
EOF
}

# The checksums of the archives of this version.
checksum() {
    case $1 in
    '@TARGET@') echo '@SHA256@' ;;
    *) return 1 ;;
    esac
}

fail() {
    echo "error: $1" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Prints the target of this machine.
target() {
    case $(uname -m) in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
    *) fail "there is no archive for the processor $(uname -m); build from source: cargo install mcproof" ;;
    esac
    case $(uname -s) in
    Darwin) echo "$cpu-apple-darwin" ;;
    Linux) if has_glibc; then echo "$cpu-unknown-linux-gnu"; else echo "$cpu-unknown-linux-musl"; fi ;;
    *) fail "there is no archive for the system $(uname -s); build from source: cargo install mcproof" ;;
    esac
}

# Whether the C library is glibc 2.28 or newer. Everywhere else the static program runs.
has_glibc() {
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || return 1
    case $libc in
    'glibc 2.'*) minor=${libc#glibc 2.} && [ "${minor%%.*}" -ge 28 ] ;;
    *) return 1 ;;
    esac
}

# Downloads a URL to a file.
download() {
    case $1 in
    https://*) if has curl; then curl --proto '=https' --tlsv1.2 -fsSL -o "$2" "$1"; elif has wget; then wget -q -O "$2" "$1"; else no_client; fi ;;
    file://*) cp "${1#file://}" "$2" ;;
    *) if has curl; then curl -fsSL -o "$2" "$1"; elif has wget; then wget -q -O "$2" "$1"; else no_client; fi ;;
    esac
}

no_client() {
    fail "neither curl nor wget is installed: install one of them"
}

sha256() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail "the checksum cannot be verified: install sha256sum, shasum or openssl"
    fi
}

# Everything is a function that is called on the last line, so that a download of this script that breaks off runs nothing.
main() {
    to='' from=$RELEASES target=''
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h) usage && exit 0 ;;
        --to | --from | --target) [ $# -ge 2 ] || fail "$1 needs a value; see --help" ;;
        *) fail "unknown option $1; see --help" ;;
        esac
        case $1 in
        --to) to=$2 ;;
        --from) from=${2%/} ;;
        --target) target=$2 ;;
        esac
        shift 2
    done
    if [ -z "$to" ]; then
        [ -n "${HOME:-}" ] || fail "HOME is not set: pass --to DIRECTORY"
        to=$HOME/.local/bin
    fi
    [ -n "$target" ] || target=$(target)
    expected=$(checksum "$target") || fail "this installer has no archive for $target"

    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    archive=$folder/mcproof.tar.gz
    echo "downloading mcproof $VERSION for $target"
    download "$from/mcproof-$target.tar.gz" "$archive" || fail "cannot download $from/mcproof-$target.tar.gz"
    actual=$(sha256 "$archive")
    [ "$actual" = "$expected" ] || fail "the checksum of mcproof-$target.tar.gz is $actual, expected $expected: nothing was installed"

    tar -xzf "$archive" -C "$folder"
    mkdir -p "$to" || fail "cannot create $to: pass another directory with --to"
    # A program that is running cannot be overwritten, but it can be replaced.
    cp "$folder/mcproof-$target/mcproof" "$to/.mcproof-new" || fail "cannot write to $to: pass another directory with --to"
    chmod 755 "$to/.mcproof-new"
    mv -f "$to/.mcproof-new" "$to/mcproof"
    "$to/mcproof" --version >/dev/null || fail "$to/mcproof does not run on this machine"
    echo "installed $to/mcproof"
    case :$PATH: in
    *:"$to":*) ;;
    *) echo "$to is not on PATH: add it, or run $to/mcproof" ;;
    esac
}

main "$@"
