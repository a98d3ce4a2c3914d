//! That the machine is WSL, as texts tell it.

use super::super::Line;
use super::super::pattern::{matches, pattern};
use crate::model::Facts;
use crate::observed::Observed;
use crate::raw::RawItem;

pattern! {
    /// What only a system inside WSL shows.
    SHOWN = r"microsoft-standard(?:-WSL2)?|/usr/lib/wsl/(?:lib|drivers)|/dev/dxg\b"
}
pattern! {
    SAID = r"(?i)\b(?:in|inside|under|on|using|within|via|from|running)\s+(?:(?:my|an?|the)\s+)?(?:[\w.\- ]{0,24}[\s(])?WSL ?-?2?\b|\bWSL ?-?2?\s*(?:[,(:/+]\s*)?(?:Ubuntu|Debian|Fedora|distro|instance|kernel|system)|^\W*(?:OS|system|platform|environment)\b[^\n]{0,60}\bWSL ?-?2?\b"
}
pattern! { DENIED = r"(?i)\b(?:not|no|non|without|outside|isn['’]t|instead of|than|neither)\b[^\n.]{0,16}\bWSL|\bWSL ?2?\b[^\n.]{0,24}\b(?:is not|isn['’]t|not used|works|is fine)" }

/// Enters the mark. A system is one or the other, so the first word counts.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    let absent = line.has("No such file") || line.has("not found") || line.has("cannot open");
    let shown = matches(&SHOWN, line.text) && !absent;
    let said = prose && matches(&SAID, line.text) && !matches(&DENIED, line.text);
    if shown || said {
        facts.host.wsl.or_better(Observed::seen(true, line.origin()));
    }
}

/// The listing of WSL's folder of libraries: those of Windows' graphics are always there, and
/// libcuda with a driver of NVIDIA's that knows WSL.
pub(in super::super) fn folder(item: &RawItem, text: &str, facts: &mut Facts) {
    const OF_EVERY_WSL: &str = "libdxcore.so";
    if !text.contains("/usr/lib/wsl") || !text.contains(OF_EVERY_WSL) {
        return;
    }
    let lines: Vec<&str> = text.lines().map(super::super::bounded).collect();
    let lists = |line: &&&str| line.contains(".so");
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(OF_EVERY_WSL)) {
        let before = lines[..at].iter().rev().take_while(lists);
        let mut block = before.chain(lines[at..].iter().take_while(lists));
        if block.any(|line| line.contains("libcuda")) {
            return;
        }
        let origin = || item.origin_at(u32::try_from(at + 1).unwrap_or(u32::MAX), line);
        facts.library.wsl_lacks_cuda.get_or_insert_with(origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn a_folder_without_libcuda() {
        let lacks = |text: &str| lines_of(text).library.wsl_lacks_cuda.is_some();
        assert!(lacks("ls /usr/lib/wsl/lib shows\nlibd3d12.so  libd3d12core.so  libdxcore.so\n"));
        assert!(lacks("ls -1 /usr/lib/wsl/lib\nlibd3d12.so\nlibdxcore.so\n\nlibcuda.so.1 fails\n"));
        assert!(!lacks("ls -1 /usr/lib/wsl/lib\nlibcuda.so.1\nlibd3d12.so\nlibdxcore.so\n"));
        assert!(!lacks("libdxcore.so is loaded from somewhere\n"));
    }

    #[test]
    fn marks_and_words() {
        assert!([&SHOWN, &SAID, &DENIED].iter().all(|pattern| pattern.is_some()));
        for text in [
            "Linux pc 5.15.153.1-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux",
            "OS: Ubuntu 22.04 (WSL2)",
            "I run Ubuntu in WSL2 on Windows 11",
            "WSL2 Ubuntu 20.04",
            "/usr/lib/wsl/lib/nvidia-smi works",
        ] {
            assert_eq!(lines_of(text).host.wsl.value(), Some(&true), "{text}");
        }
        for text in
            ["This is bare metal, not WSL.", "On the same PC WSL2 works, native Linux does not"]
        {
            assert_eq!(lines_of(text).host.wsl.value(), None, "{text}");
        }
    }
}
