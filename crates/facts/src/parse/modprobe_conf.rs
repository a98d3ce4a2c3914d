//! Files of modprobe.d; the format is that of modprobe.d(5).

use super::proc_modules::canonical;
use super::{At, Parsed, numbered};

/// One command of modprobe.d that bears on whether and how a module loads. Names are in the
/// kernel's spelling, with underscores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directive {
    /// `options MODULE WORD…`
    Options {
        /// The module.
        module: String,
        /// Its options, such as `uvm_disable_hmm=1`.
        options: Vec<String>,
    },
    /// `blacklist MODULE`: it does not load by its device aliases.
    Blacklist {
        /// The module.
        module: String,
    },
    /// `install MODULE COMMAND…`: the command runs in place of loading it.
    Install {
        /// The module.
        module: String,
        /// The command; `/bin/false` or `/bin/true` keep the module out altogether.
        command: String,
    },
}

/// Reads one file of modprobe.d. A backslash at a line's end joins the next one to it; the line of
/// a directive is its first.
pub fn modprobe_conf(text: &str) -> Parsed<Vec<At<Directive>>> {
    let mut parsed = Parsed::<Vec<At<Directive>>>::default();
    let mut lines = numbered(text);
    while let Some((line, first)) = lines.next() {
        let mut content = first.trim().to_owned();
        while content.ends_with('\\') {
            content.pop();
            let Some((_, next)) = lines.next() else { break };
            content.push(' ');
            content.push_str(next.trim());
        }
        let command = content.split_whitespace().next().unwrap_or("#");
        if command.starts_with('#') || OTHER_COMMANDS.contains(&command) {
            continue;
        }
        match directive(&content) {
            Some(directive) => parsed.value.push(At::new(line, directive)),
            None => parsed.complain(line, "not a command of modprobe.d"),
        }
    }
    parsed
}

/// Commands that do not bear on whether a module loads here.
const OTHER_COMMANDS: [&str; 5] = ["alias", "config", "remove", "softdep", "weakdep"];

fn directive(content: &str) -> Option<Directive> {
    let mut words = content.split_whitespace();
    let command = words.next()?;
    let module = canonical(words.next()?);
    match command {
        "options" => {
            Some(Directive::Options { module, options: words.map(str::to_owned).collect() })
        }
        "blacklist" => Some(Directive::Blacklist { module }),
        "install" => {
            let command = words.collect::<Vec<&str>>().join(" ");
            Some(Directive::Install { module, command })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_matter() {
        let parsed = modprobe_conf(
            "# generated\nblacklist nouveau\noptions nouveau modeset=0\n\
             options nvidia-uvm uvm_disable_hmm=1\n\
             options nvidia NVreg_DeviceFileGID=44 \\\n  NVreg_DeviceFileMode=0660\n\
             install nova-core /bin/false\nalias char-major-195 nvidia\nsoftdep nvidia post: nvidia-uvm\n",
        );
        assert_eq!(parsed.complaints, []);
        let options = |module: &str, options: &[&str]| Directive::Options {
            module: module.into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        assert_eq!(
            parsed.value,
            [
                At::new(2, Directive::Blacklist { module: "nouveau".into() }),
                At::new(3, options("nouveau", &["modeset=0"])),
                At::new(4, options("nvidia_uvm", &["uvm_disable_hmm=1"])),
                At::new(
                    5,
                    options("nvidia", &["NVreg_DeviceFileGID=44", "NVreg_DeviceFileMode=0660"])
                ),
                At::new(
                    7,
                    Directive::Install { module: "nova_core".into(), command: "/bin/false".into() }
                ),
            ]
        );
    }

    #[test]
    fn odd_lines_are_kept_as_complaints() {
        let parsed = modprobe_conf("cat: x: No such file\noptions\nblacklist a\\");
        assert_eq!(parsed.complaints.len(), 2);
        assert_eq!(parsed.value, [At::new(3, Directive::Blacklist { module: "a".into() })]);
    }
}
