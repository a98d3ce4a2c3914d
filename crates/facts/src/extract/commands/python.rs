//! Python one-liners and sessions: what cuInit answered, what torch says of itself.

use super::Output;
use crate::model::Facts;
use crate::model::cuda::{Stage, Trial, TrialResult};
use crate::observed::Observed;
use crate::version::CudaVersion;

pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) -> bool {
    let program = output.command.program();
    let python = program.starts_with("python") || program == "ipython";
    // In Python's interactive mode the whole line is the code.
    let code = if python { output.command.words.join(" ") } else { output.line.to_owned() };
    if python && code.contains("collect_env") {
        facts.mentions_gpu = true;
        crate::extract::collect_env::apply(output.item, facts);
        return true;
    }
    let asks_driver = code.contains("cuInit");
    let asks_torch = code.contains("torch.");
    if !asks_driver && !asks_torch {
        return false;
    }
    facts.mentions_gpu = true;
    if asks_driver {
        cu_init(output, facts);
    }
    if asks_torch {
        torch(&code, output, facts);
    }
    true
}

/// `print(ctypes.CDLL("libcuda.so.1").cuInit(0))`: a lone number is its answer; `timeout` that
/// ended it says that it hung.
fn cu_init(output: &Output<'_>, facts: &mut Facts) {
    let result = if output.timed_out() {
        Some((TrialResult::Hung { killable: None }, 0))
    } else {
        crate::parse::numbered(output.text).find_map(|(number, line)| {
            let code = line.trim().parse::<i64>().ok().filter(|code| (0..1000).contains(code))?;
            Some((TrialResult::Code(code), number))
        })
    };
    let Some((result, line)) = result else { return };
    let origin = match line {
        0 => output.item.origin_at(0, output.line),
        _ => output.item.origin_of_line(line),
    };
    facts.cuda.trials.push(Trial {
        // Each run of the interpreter is a process of its own.
        fresh_process: Some(true),
        hmm_disabled: facts.module.uvm_disable_hmm.value().copied(),
        ..Trial::new(Stage::Init, result, "cuInit", origin)
    });
}

/// The attributes of torch whose values a one-liner prints, in the order in which it prints them.
const ATTRIBUTES: [&str; 6] = [
    "torch.cuda.is_available()",
    "torch.cuda.device_count()",
    "torch.version.cuda",
    "torch.__version__",
    "torch.cuda.get_arch_list()",
    "torch._C._cuda_getCompiledVersion()",
];

/// Labels as in `print("torch cuda:", torch.version.cuda)` need no understanding: each printed
/// value has a shape of its own.
fn torch(code: &str, output: &Output<'_>, facts: &mut Facts) {
    let mut asked: Vec<(usize, &str)> = ATTRIBUTES
        .into_iter()
        .filter_map(|attribute| Some((code.find(attribute)?, attribute)))
        .collect();
    asked.sort_unstable();
    let mut values = crate::parse::numbered(output.text)
        .flat_map(|(number, line)| tokens(line).into_iter().map(move |token| (number, token)));
    for (_, attribute) in asked {
        let fits = |token: &str| shape_fits(attribute, token);
        let Some((number, token)) = values.by_ref().find(|(_, token)| fits(token)) else { return };
        enter(attribute, &token, number, output, facts);
    }
}

/// Words of a line; a list in brackets is one.
fn tokens(line: &str) -> Vec<String> {
    match (line.find('['), line.rfind(']')) {
        (Some(open), Some(close)) if open < close => {
            let mut out: Vec<String> = line[..open].split_whitespace().map(str::to_owned).collect();
            out.push(line[open..=close].to_owned());
            out.extend(line[close + 1..].split_whitespace().map(str::to_owned));
            out
        }
        _ => line
            .split_whitespace()
            .map(|word| word.trim_matches([',', '\'', '"']).to_owned())
            .collect(),
    }
}

fn shape_fits(attribute: &str, token: &str) -> bool {
    match attribute {
        "torch.cuda.is_available()" => matches!(token, "True" | "False"),
        "torch.cuda.device_count()" => token.len() <= 3 && token.parse::<u32>().is_ok(),
        "torch.version.cuda" => {
            token == "None" || CudaVersion::parse(token).is_some_and(|_| token.contains('.'))
        }
        "torch.__version__" => {
            token.starts_with(|ch: char| ch.is_ascii_digit()) && token.contains('.')
        }
        "torch.cuda.get_arch_list()" => token.starts_with('['),
        _ => token.len() >= 4 && token.parse::<i64>().is_ok(),
    }
}

fn enter(attribute: &str, token: &str, number: u32, output: &Output<'_>, facts: &mut Facts) {
    let origin = output.item.origin_of_line(number);
    match attribute {
        "torch.cuda.is_available()" => {
            let available = token == "True";
            facts.framework.torch_available = Observed::seen(available, origin.clone());
            if available {
                facts.cuda.trials.push(Trial {
                    fresh_process: Some(true),
                    hmm_disabled: facts.module.uvm_disable_hmm.value().copied(),
                    ..Trial::new(Stage::Count, TrialResult::Code(0), attribute, origin)
                });
            }
        }
        "torch.cuda.device_count()" => {
            if let Ok(count) = token.parse() {
                facts.cuda.count = Observed::seen(count, origin);
            }
        }
        _ => {
            let torch = super::super::torch::entry(facts, &origin);
            match attribute {
                "torch.version.cuda" => torch.cuda = Some(CudaVersion::parse(token)),
                "torch.__version__" => torch.version = Some(token.to_owned()),
                // A list that whoever pasted it shortened does not say what is missing.
                "torch.cuda.get_arch_list()" if token.contains("...") => {}
                "torch.cuda.get_arch_list()" => {
                    let list = token.trim_matches(['[', ']']).split(',');
                    let names = list.map(|name| name.trim().trim_matches('\'').to_owned());
                    torch.arch_list = Some(names.filter(|name| !name.is_empty()).collect());
                }
                _ => {
                    let compiled = token.parse().ok().and_then(CudaVersion::from_api);
                    if torch.cuda.is_none() && compiled.is_some() {
                        torch.cuda = Some(compiled);
                    }
                }
            }
        }
    }
}
