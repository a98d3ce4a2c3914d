//! DKMS's make.log of a build that went wrong, and of those that did not.

use super::reading::Reading;
use crate::model::Facts;
use crate::model::module_message::ModuleMessage;

/// The log of the last build of a version: its head names the kernel, its end what stopped it.
///
/// `DKMS make.log for nvidia-535.98 for kernel 6.4.6-76060406-generic (x86_64)`
pub(super) fn make_log(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.item.text() else { return };
    let kernel = text.lines().next().and_then(|head| {
        let (_, rest) = head.split_once(" for kernel ")?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    let failure = crate::parse::numbered(&text).find(|(_, line)| {
        line.starts_with("make") && line.contains("*** [") && line.contains("Error")
    });
    if let Some((number, line)) = failure {
        let message = ModuleMessage::BuildFailed { kernel, of_nvidia: true };
        facts.module.hear(message, reading.item.origin_at(number, line));
    }
    crate::extract::loose::messages_only(reading.item, &text, facts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{ItemName, RawItem, RawSet};

    fn messages(text: &str) -> Vec<ModuleMessage> {
        let path = "/var/lib/dkms/nvidia/535.98/build/make.log";
        let item = RawItem::new(ItemName::File(path.to_owned()), text.as_bytes());
        let facts = crate::extract(&[item].into_iter().collect::<RawSet>());
        facts.module.messages.into_iter().map(|seen| seen.value).collect()
    }

    #[test]
    fn a_build_that_ended_in_an_error() {
        let head = "DKMS make.log for nvidia-535.98 for kernel 6.4.6-76060406-generic (x86_64)\n";
        let failed = messages(&format!(
            "{head}make[2]: *** [scripts/Makefile.build:252: /x/nv.o] Error 1\n"
        ));
        let kernel = Some("6.4.6-76060406-generic".to_owned());
        assert_eq!(failed, [ModuleMessage::BuildFailed { kernel, of_nvidia: true }]);
        assert_eq!(messages(&format!("{head}  LD [M]  /x/nvidia.ko\n")), []);
    }
}
