//! Path patterns with `*`.

/// True when a path fits a pattern. A `*` stands for any characters within one component.
pub fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('/');
    let mut components = path.split('/');
    loop {
        match (parts.next(), components.next()) {
            (None, None) => return true,
            (Some(part), Some(component)) if component_matches(part, component) => {}
            _ => return false,
        }
    }
}

/// One component: what stands between the stars must come in that order. Each piece is taken at
/// its first place, which is enough when `*` is the only wildcard.
fn component_matches(pattern: &str, component: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == component;
    };
    let Some(mut left) = component.strip_prefix(first) else {
        return false;
    };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        match left.split_once(piece) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_component() {
        for (pattern, path) in [
            ("/proc/modules", "/proc/modules"),
            ("/sys/bus/pci/devices/*/vendor", "/sys/bus/pci/devices/0000:01:00.0/vendor"),
            ("/boot/config-*", "/boot/config-6.8.12-9-pve"),
            ("/x/a*b*c", "/x/a1b2b3c"),
            ("/x/*.conf", "/x/.conf"),
            ("/x/*", "/x/y"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/proc/modules", "/proc/modules/"),
            ("/sys/*/vendor", "/sys/bus/pci/vendor"),
            ("/boot/config-*", "/boot/vmlinuz"),
            ("/x/a*b*c", "/x/a1c"),
            ("/x/ab*bc", "/x/abc"),
            ("/x/*", "/x"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }
}
