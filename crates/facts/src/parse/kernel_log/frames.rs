//! Frames of kernel stack traces: `? nvidia_open+0x12/0x34 [nvidia]`.

/// Most frames that one line may hold; a pasted trace may stand on one line.
const FRAMES_LIMIT: usize = 64;

/// The frames of a line, as `function` or `function [module]`.
pub(crate) fn of_line(text: &str) -> Vec<String> {
    let mut frames = Vec::new();
    let mut words = text.split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        let Some(function) = function_of(word) else {
            continue;
        };
        let module = words.peek().and_then(|next| module_of(next));
        frames.push(match module {
            Some(module) => format!("{function} [{module}]"),
            None => function.to_owned(),
        });
        if frames.len() == FRAMES_LIMIT {
            break;
        }
    }
    frames
}

/// The function in `uvm_hmm_unregister_gpu+0x51/0x3a0`, also behind the segment of an instruction
/// pointer, `0010:`.
fn function_of(word: &str) -> Option<&str> {
    let (name, rest) = word.split_once("+0x")?;
    let (offset, size) = rest.split_once("/0x")?;
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = size.trim_end_matches([',', '.', ')', '/', ';']);
    let name = name.rsplit([':', ']', '(']).next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let valid = !name.is_empty() && name.len() < 256 && name.bytes().all(plain);
    (valid && hex(offset) && hex(size)).then_some(name)
}

fn module_of(word: &str) -> Option<&str> {
    let name = word.strip_prefix('[')?.split(']').next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_all_their_forms() {
        assert_eq!(of_line(" ? nv_open_device+0x12/0x34 [nvidia]"), ["nv_open_device [nvidia]"]);
        assert_eq!(
            of_line("[<0>] rwsem_down_read_slowpath+0x1a/0x2b0"),
            ["rwsem_down_read_slowpath"]
        );
        assert_eq!(
            of_line("RIP: 0010:uvm_hmm_unregister_gpu+0x51/0x3a0 [nvidia_uvm]"),
            ["uvm_hmm_unregister_gpu [nvidia_uvm]"]
        );
        assert_eq!(
            of_line(
                "down+0x54/0x80 / console_lock+0x25/0x70 / RmShutdownAdapter+0x195/0x3e0 [nvidia]"
            ),
            ["down", "console_lock", "RmShutdownAdapter [nvidia]"]
        );
    }

    #[test]
    fn other_words_are_none() {
        assert!(of_line("addr+0x10 is not one, nor a+0xzz/0x10, nor +0x1/0x2").is_empty());
    }
}
