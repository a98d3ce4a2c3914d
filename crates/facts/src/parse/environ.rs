//! A process's environment: /proc/PID/environ, or the output of `env` and `printenv`.

use super::At;

/// Reads an environment: `NAME=value`, ended by NUL as the kernel has it, or one a line as tools
/// print it. A line that begins no variable belongs to the value before it. The number beside each
/// counts lines in the second form and is 0 in the first.
pub fn environ(bytes: &[u8]) -> Vec<At<(String, String)>> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        return text.split('\0').filter_map(variable).map(|pair| At::new(0, pair)).collect();
    }
    let mut variables: Vec<At<(String, String)>> = Vec::new();
    for (line, content) in super::numbered(&text) {
        match (variable(content), variables.last_mut()) {
            (Some(pair), _) => variables.push(At::new(line, pair)),
            (None, Some(last)) => {
                last.value.1.push('\n');
                last.value.1.push_str(content);
            }
            (None, None) => {}
        }
    }
    variables
}

fn variable(entry: &str) -> Option<(String, String)> {
    let (name, value) = entry.split_once('=')?;
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let plain = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_%.-".contains(&byte));
    (begins && plain).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let kernel = environ(b"HOME=/root\0CUDA_VISIBLE_DEVICES=\0=odd\0\xff=x\0A=1\n2\0");
        let expected = [("HOME", "/root"), ("CUDA_VISIBLE_DEVICES", ""), ("A", "1\n2")];
        assert!(kernel.iter().map(|at| (&*at.value.0, &*at.value.1)).eq(expected));
        let tool = environ(b"LS_COLORS=a=b\nBASH_FUNC_f%%=() {  echo x\n}\nCUDA_HOME=/opt\n");
        assert_eq!(tool[1].value.1, "() {  echo x\n}");
        assert_eq!(tool[2], At::new(4, ("CUDA_HOME".into(), "/opt".into())));
    }
}
