//! Accesses that a policy denied: lines of the audit log by SELinux, AppArmor and Landlock, and
//! what setroubleshoot makes of SELinux's.

use super::Line;
use super::pattern::{captures, pattern};
use crate::model::Facts;
use crate::model::engine::{Denial, Policy, SelinuxMode};
use crate::observed::{Observed, Seen};

pattern! { AVC = r"avc:\s+denied\s+\{(?P<access>[^}]{1,80})\}" }
pattern! { FIELD = r#"\b(?P<key>name|path|scontext|tcontext|tclass|permissive|operation|profile|requested_mask|denied_mask|domain|blockers|dev|comm)=(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))"# }
pattern! { APPARMOR = r#"apparmor="(?P<verdict>DENIED|ALLOWED)""# }
pattern! { LANDLOCK = r"type=LANDLOCK_ACCESS\b|\btype=1423\b" }
pattern! { PREVENTS = r#"SELinux is preventing (?P<comm>\S+) from (?:using the )?["']?(?P<access>[\w, ]+?)["']? access(?:es)? on the (?P<class>\S+) (?P<name>\S+?)\.?(?:\s|$)"# }
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
    if facts.sandbox.engine.denials.len() >= LIMIT {
        return;
    }
    if let Some(denial) = audited(line.text).or_else(|| prevented(line.text)) {
        enter(denial, line, facts);
    } else {
        troubleshot(line, facts);
    }
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
        let all =
            [&AVC, &FIELD, &APPARMOR, &LANDLOCK, &PREVENTS, &SOURCE, &TARGET, &OBJECTS, &MODE];
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
