//! Console events, which Windows has instead of signals.

use super::SignalAction;
use std::io;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

pub type Interrupt = CtrlC;
pub type Hangup = CtrlClose;

/// Ctrl-Break, or the system shuts down.
pub struct Terminate(CtrlBreak, CtrlShutdown);

/// The action that closing the console requests from a service.
pub const ON_SERVICE_HANGUP: SignalAction = SignalAction::Stop;

pub fn interrupt() -> io::Result<Interrupt> {
    ctrl_c()
}

pub fn terminate() -> io::Result<Terminate> {
    Ok(Terminate(ctrl_break()?, ctrl_shutdown()?))
}

pub fn hangup() -> io::Result<Hangup> {
    ctrl_close()
}

impl Terminate {
    pub async fn recv(&mut self) -> Option<()> {
        tokio::select! {
            received = self.0.recv() => received,
            received = self.1.recv() => received,
        }
    }
}

/// There is no nohup(1).
pub fn ignores_hangup() -> bool {
    false
}
