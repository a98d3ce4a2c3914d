//! The expressions of the kernel-log signatures, with the crate that runs them.

use nvabi::signature::{self, Signature};
use regex::Regex;

fn compiled(signature: Signature) -> Regex {
    Regex::new(signature.regex).unwrap_or_else(|error| panic!("{}: {error}", signature.id))
}

fn matches(line: &str) -> Vec<&'static str> {
    let fitting = signature::all().filter(|signature| compiled(*signature).is_match(line));
    fitting.map(|signature| signature.id).collect()
}

#[test]
fn every_expression_compiles_and_none_matches_nothing() {
    for signature in signature::all() {
        let regex = compiled(signature);
        assert!(!regex.is_match(""), "{} matches an empty line", signature.id);
    }
}

#[test]
fn severities_are_of_a_known_set() {
    let known = ["info", "warn", "warning", "error", "fatal", "varies", "symptom"];
    for signature in signature::all() {
        assert!(known.contains(&signature.severity), "{}: {}", signature.id, signature.severity);
    }
}

#[test]
fn lines_of_the_driver_find_their_signature() {
    for (line, id) in [
        (
            "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "XID",
        ),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x65:1784)", "RMINIT_FAILED"),
        ("NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)", "NVRM_API_MISMATCH"),
    ] {
        assert!(matches(line).contains(&id), "{line}: {:?}", matches(line));
    }
    assert_eq!(matches("usb 1-1: new high-speed USB device"), Vec::<&str>::new());
}
