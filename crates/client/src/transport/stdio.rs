//! The stdio transport: one message a line on the stdin and stdout of a process that we start.
//! Source: 2025-11-25 and 2026-07-28, basic/transports, stdio.

use super::faults::FaultInjector;
use super::line_channel::{Ending, LineChannel};
use super::{
    Envelope, Exit, Guardian, Inbox, Launch, Limits, Process, Purpose, ResourceUsage, ShutdownReport, ShutdownTimeouts, StartFailure,
    StdinUse,
};
use crate::Tap;
use mcproof_record::FrameId;
use mcproof_system::pipes::PipeGauge;
use std::sync::Arc;

pub(crate) struct StdioConnection {
    process: Process,
    channel: LineChannel,
}

impl StdioConnection {
    /// With what tells how much of its stdin the server has read, which keeps that open.
    pub(crate) async fn open(
        launch: &Launch,
        guardian: &Guardian,
        limits: Limits,
        faults: Option<&FaultInjector>,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Result<(Self, Option<PipeGauge>), StartFailure> {
        let (process, stdin, stdout) = Process::start(launch, guardian, tap, None).await?;
        let ending = Ending::Process(process.watch_exit());
        let gauge = PipeGauge::of(&stdin);
        let channel = LineChannel::open(stdout, stdin, ending, limits, faults, tap, inbox);
        Ok((Self { process, channel }, gauge))
    }

    pub(crate) fn send(&self, envelope: Envelope) -> FrameId {
        self.channel.send(envelope)
    }

    /// As [`LineChannel::send_bytes`].
    pub(crate) fn send_bytes(&self, bytes: Vec<u8>, cut: Option<usize>, purpose: Purpose) -> FrameId {
        self.channel.send_bytes(bytes, cut, purpose)
    }

    /// Asks the server to end, and goes on reading what it says.
    pub(crate) fn close_stdin(&self) {
        self.channel.finish_output();
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) async fn close(mut self, patience: ShutdownTimeouts) -> ShutdownReport {
        let report = self.process.shut_down(self.channel.close_output(patience.end_of_input), StdinUse::Protocol, patience).await;
        self.channel.end().await;
        report
    }

    pub(crate) async fn settle(&self) {
        self.process.settle().await;
    }

    pub(crate) fn resource_usage(&self) -> Option<ResourceUsage> {
        self.process.resource_usage()
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.process.exit()
    }
}
