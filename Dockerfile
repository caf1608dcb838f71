# A test stage: the image of your server is only built if its tests pass.
#
#   docker build --target tested -t my-server .
#
# Replace the stages `server` and `tested` by your own; `mcproof` stays as it is.

# What is built here runs where the C library is as new, or newer: take the Rust image of the system that the server's is of.
FROM rust:1-slim-bookworm AS mcproof
WORKDIR /src
COPY . .
RUN cargo install --locked --path crates/cli --root /opt/mcproof

# What you ship. Here: the demo shop that is built into mcproof.
FROM debian:stable-slim AS server
COPY --from=mcproof /opt/mcproof/bin/mcproof /usr/local/bin/mcproof
CMD ["mcproof", "demo", "shop"]

# The tests run on what is shipped. A failure ends the build here.
FROM server AS test
COPY --from=mcproof /opt/mcproof/bin/mcproof /opt/mcproof/bin/mcproof
COPY examples/quickstart /suites
RUN /opt/mcproof/bin/mcproof test /suites && touch /tested

# The file makes this stage depend on the tests: a builder skips stages that nothing needs.
FROM server AS tested
COPY --from=test /tested /tmp/tested
