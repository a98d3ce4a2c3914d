//! Answers that gpudx gives in the driver's stead, to see what a program makes of them.

use std::str::FromStr;

use facts::Errno;

/// An answer to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    /// The call's number among the driver calls of the trace, from 1.
    pub call: u64,
    /// What it answers.
    pub answer: Injected,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injected {
    /// The system call fails with this errno.
    Errno(Errno),
    /// The system call succeeds and the driver's status is this NV_STATUS.
    Status(u32),
}

/// The largest errno that the kernel tells a program.
const LAST_ERRNO: i32 = 4095;

impl FromStr for Injection {
    type Err = String;

    /// Reads `12=EPERM`, `12=1` or `12=NV_ERR_NO_MEMORY`.
    fn from_str(text: &str) -> Result<Injection, String> {
        let (call, answer) = text
            .split_once('=')
            .ok_or("it takes the number of a call and an answer, such as 12=EPERM")?;
        let call = call
            .parse()
            .ok()
            .filter(|call| *call > 0)
            .ok_or_else(|| format!("{call} is no number of a call; they count from 1"))?;
        Ok(Injection { call, answer: answer_of(answer)? })
    }
}

fn answer_of(text: &str) -> Result<Injected, String> {
    if text.starts_with("NV_") {
        let status = nvabi::nv_status::by_name(text);
        return status
            .map(|status| Injected::Status(status.code))
            .ok_or_else(|| format!("{text} is no NV_STATUS that is known"));
    }
    let number = text.parse().ok().filter(|number| (1..=LAST_ERRNO).contains(number));
    number
        .map(Errno)
        .or_else(|| Errno::from_name(text))
        .map(Injected::Errno)
        .ok_or_else(|| format!("{text} is no errno: a name such as EPERM, or 1 to {LAST_ERRNO}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        let of = |text: &str| text.parse::<Injection>();
        let eperm = Injection { call: 12, answer: Injected::Errno(Errno::EPERM) };
        assert_eq!(of("12=EPERM"), Ok(eperm));
        assert_eq!(of("12=1"), Ok(eperm));
        let status = Injection { call: 1, answer: Injected::Status(0x51) };
        assert_eq!(of("1=NV_ERR_NO_MEMORY"), Ok(status));
        for text in ["12", "0=EPERM", "x=EPERM", "1=", "1=0", "1=4096", "1=NV_X", "-1=1", "1=EFOO"]
        {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
