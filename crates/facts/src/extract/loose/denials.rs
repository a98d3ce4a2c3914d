//! Accesses that a policy denied: lines of the audit log by SELinux, AppArmor and Landlock, and
//! what setroubleshoot makes of SELinux's.

use super::Line;
use super::pattern::{captures, pattern};
use crate::model::Facts;
use crate::model::engine::{Denial, Policy, SelinuxMode};
use crate::observed::{Errno, Observed, Seen};

pattern! { AVC = r"avc:\s+denied\s+\{(?P<access>[^}]{1,80})\}" }
pattern! { FIELD = r#"\b(?P<key>name|path|scontext|tcontext|tclass|permissive|operation|profile|requested_mask|denied_mask|domain|blockers|dev|comm)=(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))"# }
pattern! { APPARMOR = r#"apparmor="(?P<verdict>DENIED|ALLOWED)""# }
pattern! { LANDLOCK = r"type=LANDLOCK_ACCESS\b|\btype=1423\b" }
pattern! { PREVENTS = r#"SELinux is preventing (?P<comm>\S+) from (?:using the )?["']?(?P<access>[\w, ]+?)["']? access(?:es)? on the (?P<class>\S+) (?P<name>\S+?)\.?(?:\s|$)"# }
pattern! {
    /// `memfd_create (syscall 319) -> EPERM`, `mbind returns ENOSYS under the seccomp profile`.
    CALL = r"(?i)\b(?P<call>memfd_create|mbind|set_mempolicy|get_mempolicy|move_pages|migrate_pages|clone3|openat2|close_range|pidfd_\w+|process_vm_\w+|io_uring_\w+|userfaultfd|name_to_handle_at|ioctl|mlock2?|rseq|membarrier|perf_event_open|kcmp)\b(?:\(\))?[^.\n]{0,48}(?:->|=>|→|:|=|\breturn(?:s|ed)\b|\banswers?\b|\bgives?\b|\bgot\b|\bgets\b|\bwith\b)\s*[`*]{0,2}(?:-1 )?(?P<errno>EPERM|ENOSYS)\b"
}
pattern! { FILTERED = r"(?i)\bseccomp\b" }
pattern! {
    /// The audit log of a filter that answers with an errno, or kills.
    AUDIT = r"type=(?:1326|SECCOMP)\b[^\n]*\bsyscall=(?P<number>\d+)[^\n]*\bcode=0x(?P<code>[0-9a-f]+)"
}
pattern! { SOURCE = r"^\s*Source Context\s+(?P<label>\S+)" }
pattern! { TARGET = r"^\s*Target Context\s+(?P<label>\S+)" }
pattern! { OBJECTS = r"^\s*Target Objects\s+(?P<name>\S+)(?:\s+\[\s*(?P<class>\w+)\s*\])?" }
pattern! {
    MODE = r"(?i)(?:\bgetenforce\b\W{1,4}|\bSELinux(?: mode| status)?\b(?: is)?(?: set to)?(?: in)?\W{1,3}|^\s*Current mode:\s+|^\s*SELINUX=)(?:mode\s+)?`?(?P<mode>enforcing|permissive|disabled|off)\b"
}

/// Most denials that are kept; a policy that denies once denies a thousand times.
const LIMIT: usize = 64;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    mode(line, facts);
    filtered(line, facts);
    if facts.sandbox.engine.denials.len() >= LIMIT {
        return;
    }
    let mut any = false;
    for record in records(line.text) {
        if let Some(denial) = audited(record).or_else(|| prevented(record)) {
            enter(denial, line, facts);
            any = true;
        }
    }
    if !any {
        troubleshot(line, facts);
    }
}

/// The records of a line: who pastes an audit log may join its lines, and each begins with `type=`
/// or its own `avc:`.
fn records(text: &str) -> impl Iterator<Item = &str> {
    let mark = if text.matches("avc:").count() > 1 { Some("avc:") } else { None };
    let starts: Vec<usize> = mark
        .into_iter()
        .flat_map(|mark| text.match_indices(mark).map(|(at, _)| at).skip(1))
        .take(LIMIT)
        .collect();
    let ends: Vec<usize> = starts.iter().copied().chain([text.len()]).collect();
    let begins = std::iter::once(0).chain(starts);
    let pieces: Vec<&str> = begins.zip(ends).filter_map(|(from, to)| text.get(from..to)).collect();
    pieces.into_iter()
}

/// A call that a seccomp filter refused: as the audit log has it, or as somebody tried it.
fn filtered(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&AUDIT, line.text) {
        // SECCOMP_RET_ERRNO; SECCOMP_RET_KILL ends the program, and a plain log entry lets it pass.
        if found["code"].starts_with('5') {
            let name = format!("system call {}", &found["number"]);
            facts.sandbox.micro.entry(name).or_insert((Some(Errno::EPERM), line.origin()));
        }
        return;
    }
    let Some(found) = captures(&CALL, line.text) else { return };
    if captures(&FILTERED, line.text).is_none() {
        return;
    }
    let Some(errno) = Errno::from_name(&found["errno"]) else { return };
    let name = found["call"].to_ascii_lowercase();
    facts.sandbox.micro.entry(name).or_insert((Some(errno), line.origin()));
}

fn enter(denial: Denial, line: &Line<'_>, facts: &mut Facts) {
    facts.mentions_gpu |= denial.of_driver_node();
    facts.sandbox.engine.denials.push(Seen::new(denial, line.origin()));
}

/// The mode of SELinux as a person or a tool tells it.
fn mode(line: &Line<'_>, facts: &mut Facts) {
    if !line.text.to_ascii_lowercase().contains("enforc")
        && !line.has("SE")
        && !line.has("ermissive")
    {
        return;
    }
    let Some(found) = captures(&MODE, line.text) else { return };
    let word = found.name("mode").map_or("", |mode| mode.as_str());
    let Some(mode) = mode_of(word) else { return };
    facts.sandbox.engine.selinux.or_later(Observed::seen(mode, line.origin()));
}

/// The word of getenforce.
pub(crate) fn mode_of(word: &str) -> Option<SelinuxMode> {
    match word.to_ascii_lowercase().as_str() {
        "enforcing" => Some(SelinuxMode::Enforcing),
        "permissive" => Some(SelinuxMode::Permissive),
        "disabled" | "off" => Some(SelinuxMode::Disabled),
        _ => None,
    }
}

/// A line of the audit log.
fn audited(text: &str) -> Option<Denial> {
    if !(text.contains("avc:")
        || text.contains("apparmor=")
        || text.contains("LANDLOCK")
        || text.contains("type=1423"))
    {
        return None;
    }
    let field = |wanted: &str| {
        let expression = FIELD.as_ref()?;
        let found = expression.captures_iter(text).find(|found| &found["key"] == wanted)?;
        let value = found.name("quoted").or_else(|| found.name("bare"))?;
        Some(value.as_str().to_owned())
    };
    let named = || field("path").or_else(|| field("name")).unwrap_or_default();
    if let Some(found) = captures(&AVC, text) {
        return Some(Denial {
            policy: Policy::Selinux,
            access: found["access"].trim().to_owned(),
            subject: field("scontext").unwrap_or_default(),
            object: field("tcontext").unwrap_or_default(),
            class: field("tclass").unwrap_or_default(),
            name: named(),
            permissive: field("permissive").as_deref() == Some("1"),
        });
    }
    if let Some(found) = captures(&APPARMOR, text) {
        return Some(Denial {
            policy: Policy::Apparmor,
            access: field("denied_mask").or_else(|| field("requested_mask")).unwrap_or_default(),
            subject: field("profile").unwrap_or_default(),
            object: String::new(),
            class: String::new(),
            name: field("name").unwrap_or_default(),
            permissive: &found["verdict"] == "ALLOWED",
        });
    }
    captures(&LANDLOCK, text)?;
    Some(Denial {
        policy: Policy::Landlock,
        access: field("blockers").unwrap_or_default(),
        subject: field("domain").unwrap_or_default(),
        object: String::new(),
        class: String::new(),
        name: named(),
        permissive: false,
    })
}

/// setroubleshoot's sentence: `SELinux is preventing nvidia-smi from 'read, write' accesses on the
/// chr_file nvidiactl.`
fn prevented(text: &str) -> Option<Denial> {
    if !text.contains("SELinux is preventing") {
        return None;
    }
    let found = captures(&PREVENTS, text)?;
    Some(Denial {
        policy: Policy::Selinux,
        access: found["access"].to_owned(),
        subject: String::new(),
        object: String::new(),
        class: found["class"].to_owned(),
        name: found["name"].to_owned(),
        permissive: false,
    })
}

/// The table below that sentence, whose rows fill the last denial (or begin one).
fn troubleshot(line: &Line<'_>, facts: &mut Facts) {
    if !(line.has("Source Context") || line.has("Target ")) {
        return;
    }
    let denials = &mut facts.sandbox.engine.denials;
    if let Some(found) = captures(&SOURCE, line.text) {
        let label = found["label"].to_owned();
        match denials.last_mut().filter(|last| last.value.subject.is_empty()) {
            Some(last) => last.value.subject = label,
            None => denials.push(Seen::new(
                Denial {
                    policy: Policy::Selinux,
                    access: String::new(),
                    subject: label,
                    object: String::new(),
                    class: String::new(),
                    name: String::new(),
                    permissive: false,
                },
                line.origin(),
            )),
        }
    }
    let Some(last) = denials.last_mut() else { return };
    if let Some(found) = captures(&TARGET, line.text)
        && last.value.object.is_empty()
    {
        found["label"].clone_into(&mut last.value.object);
    }
    if let Some(found) = captures(&OBJECTS, line.text)
        && (last.value.name.is_empty() || last.value.class.is_empty())
    {
        found["name"].clone_into(&mut last.value.name);
        if let Some(class) = found.name("class") {
            class.as_str().clone_into(&mut last.value.class);
        }
        last.origin = line.origin();
        facts.mentions_gpu |= last.value.of_driver_node();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        let all = [
            &AVC, &FIELD, &APPARMOR, &LANDLOCK, &PREVENTS, &SOURCE, &TARGET, &OBJECTS, &MODE,
            &CALL, &FILTERED, &AUDIT,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn the_audit_log_in_its_forms() {
        let avc = audited("type=AVC msg=audit(1666107871.123:456): avc:  denied  { read write } for  pid=3211 comm=\"nvidia-smi\" name=\"nvidiactl\" dev=\"devtmpfs\" ino=712 scontext=system_u:system_r:container_t:s0:c380,c597 tcontext=system_u:object_r:xserver_misc_device_t:s0 tclass=chr_file permissive=0").unwrap();
        assert!(avc.of_driver_node());
        assert_eq!(
            (avc.access.as_str(), avc.name.as_str(), avc.permissive),
            ("read write", "nvidiactl", false)
        );
        let armor = audited("audit: type=1400 audit(1.2:3): apparmor=\"DENIED\" operation=\"open\" profile=\"docker-default\" name=\"/proc/7/task/9/comm\" pid=9 comm=\"python3\" requested_mask=\"w\" denied_mask=\"w\" fsuid=0 ouid=0").unwrap();
        assert!(armor.of_thread_name());
        assert_eq!(armor.policy, Policy::Apparmor);
        assert_eq!(audited("nothing of the kind"), None);
    }

    #[test]
    fn joined_records_are_several() {
        let one = "avc:  denied  { read } for pid=1 comm=\"x\" name=\"log\" scontext=a tcontext=b tclass=file permissive=0";
        let two = "avc:  denied  { open } for pid=2 comm=\"x\" path=\"/dev/nvidiactl\" scontext=a tcontext=u:object_r:xserver_misc_device_t:s0 tclass=chr_file permissive=0";
        let denials = lines_of(&format!("type=AVC msg={one} / type=AVC msg={two}"));
        let names: Vec<String> =
            denials.sandbox.engine.denials.iter().map(|denial| denial.value.name.clone()).collect();
        assert_eq!(names, ["log", "/dev/nvidiactl"]);
    }

    #[test]
    fn calls_that_a_filter_refuses() {
        for text in [
            "memfd_create (syscall 319) -> EPERM under the sandbox's seccomp profile",
            "under seccomp mbind() returns ENOSYS",
            "audit: type=1326 audit(1.2:3): auid=0 uid=0 comm=\"python3\" sig=0 arch=c000003e syscall=319 compat=0 ip=0x7f code=0x50000",
        ] {
            assert_eq!(lines_of(text).sandbox.micro.len(), 1, "{text}");
        }
        for text in ["ioctl returns EPERM", "seccomp lets memfd_create pass"] {
            assert!(lines_of(text).sandbox.micro.is_empty(), "{text}");
        }
    }

    #[test]
    fn setroubleshoot_tells_a_story() {
        let facts = lines_of(
            "SELinux is preventing nvidia-smi from 'read, write' accesses on the chr_file nvidia0.\nSource Context                system_u:system_r:container_t:s0:c380,c597\nTarget Context                system_u:object_r:xserver_misc_device_t:s0\nTarget Objects                /dev/nvidia0 [ chr_file ]\n",
        );
        let [denial] = facts.sandbox.engine.denials.as_slice() else { panic!() };
        assert!(denial.value.of_driver_node());
        assert!(denial.value.subject.contains("container_t"));
    }

    #[test]
    fn modes_in_words() {
        for (text, mode) in [
            ("getenforce: Permissive", SelinuxMode::Permissive),
            ("SELinux: Enforcing", SelinuxMode::Enforcing),
            ("Current mode:                   enforcing", SelinuxMode::Enforcing),
            ("SELINUX=disabled", SelinuxMode::Disabled),
            ("SELinux is in permissive mode", SelinuxMode::Permissive),
        ] {
            assert_eq!(lines_of(text).sandbox.engine.selinux.value(), Some(&mode), "{text}");
        }
    }
}
