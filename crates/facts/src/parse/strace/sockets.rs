//! The local sockets of a traced program: to whom it connected, and for whose answer it waits.
//! libcuda speaks so to the daemon of MPS.

use std::collections::BTreeMap;

use super::arguments;
use super::line::Outcome;
use crate::observed::Errno;

/// Most sockets that are followed, and connections that are kept.
const LIMIT: usize = 1024;
/// Calls that wait for the other end.
const WAITING: [&str; 5] = ["recvmsg", "recvfrom", "read", "sendmsg", "sendto"];

/// An attempt to connect to a local socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The line.
    pub line: u32,
    /// The socket's path.
    pub path: String,
    /// The errno, when it failed.
    pub failure: Option<Errno>,
}

/// A thread that waits for the other end of a local socket when the trace ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The line on which the call was entered.
    pub line: u32,
    /// The thread, when the trace tells threads apart.
    pub thread: Option<u32>,
    /// The call: `recvmsg`.
    pub call: String,
    /// The socket's path.
    pub path: String,
}

/// The sockets that are connected, by descriptor.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    connected: BTreeMap<u32, String>,
    /// All attempts.
    pub(super) connections: Vec<Connection>,
}

impl Sockets {
    /// A call returned.
    pub(super) fn leave(&mut self, line: u32, name: &str, words: &[&str], result: &Outcome<'_>) {
        let Some((descriptor, _)) = words.first().and_then(|word| arguments::descriptor(word))
        else {
            return;
        };
        match name {
            "close" => {
                self.connected.remove(&descriptor);
            }
            "connect" => {
                let Some(path) = words.get(1).and_then(|address| path_of(address)) else { return };
                let failure = result.errno.and_then(Errno::from_name);
                if failure.is_none() && self.connected.len() < LIMIT {
                    self.connected.insert(descriptor, path.clone());
                }
                if self.connections.len() < LIMIT {
                    self.connections.push(Connection { line, path, failure });
                }
            }
            _ => {}
        }
    }

    /// For whom a call that did not return waits, if for somebody at a local socket.
    pub(super) fn awaited(&self, name: &str, words: &[&str]) -> Option<String> {
        if name == "connect" {
            return path_of(words.get(1)?);
        }
        let (descriptor, _) = arguments::descriptor(words.first()?)?;
        let connected = self.connected.get(&descriptor).cloned();
        connected.filter(|_| WAITING.contains(&name))
    }
}

/// The path in `{sa_family=AF_UNIX, sun_path="/tmp/nvidia-mps/control"}`.
fn path_of(address: &str) -> Option<String> {
    let (_, text) = address.split_once("sun_path=")?;
    arguments::quoted(text)
}

#[cfg(test)]
mod tests {
    use crate::parse::strace::parse;

    const CONNECTED: &str = r#"connect(8, {sa_family=AF_UNIX, sun_path="/tmp/nvidia-mps/control"}, 25) = 0
"#;

    #[test]
    fn who_waits_for_whom() {
        for end in ["recvmsg(8, ", "recvmsg(8, strace: Process 7 detached\n <detached ...>\n"] {
            let strace = parse(&format!("{CONNECTED}{end}")).value;
            let wait = strace.waits.first().expect("it waits");
            assert_eq!((wait.call.as_str(), wait.line), ("recvmsg", 2), "{end}");
            assert_eq!(wait.path, "/tmp/nvidia-mps/control");
        }
        let others = ["recvmsg(9, ", "close(8) = 0\nrecvmsg(8, ", "recvmsg(8, {}, 0) = 4\n"];
        for end in others {
            assert_eq!(parse(&format!("{CONNECTED}{end}")).value.waits, [], "{end}");
        }
    }

    #[test]
    fn a_refused_connection_has_its_errno() {
        let text = CONNECTED.replace("= 0", "= -1 ECONNREFUSED (Connection refused)");
        let strace = parse(&text).value;
        let failure = strace.connections.first().and_then(|connection| connection.failure);
        assert_eq!(failure.map(|errno| errno.to_string()).as_deref(), Some("ECONNREFUSED"));
    }
}
