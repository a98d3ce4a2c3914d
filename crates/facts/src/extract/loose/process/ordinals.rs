//! Which GPU, by index, a program asks CUDA for, and how many CUDA counts.

use super::super::Line;
use super::super::pattern::{captures, pattern};
use super::push;
use crate::model::Facts;
use crate::observed::Observed;

pattern! {
    /// `cuda:5`, `--gpu 5`, `torch.cuda.set_device(5)`, `gpu_id=5`, `device_ids=[5]`.
    WANTED = r"(?i)(?:\bcuda:|--?(?:gpu|gpus|gpu[-_]ids?|device|cuda[-_]device)[ =]|\bset_device\(\s*(?:device\s*=\s*)?|\b(?:gpu_ids?|gpu_idx|device_ids?|device_id|local_rank|cuda_device)\s*=\s*\[?)(?P<index>\d{1,2})\b"
}
pattern! {
    /// `cudaSetDevice(5)`, `cuDeviceGet(&dev, 5)`.
    CALLED = r"\b(?:cudaSetDevice\(|cudaGetDeviceProperties\([^,)]*,\s*|cuDeviceGet\([^,)]*,\s*)(?P<index>\d{1,2})\b"
}
pattern! { DESERIALIZED = r"(?i)on CUDA device (?P<index>\d{1,2}) but torch\.cuda\.device_count\(\) is (?P<count>\d{1,2})" }
pattern! { COUNTED = r"(?i)\b(?:torch\.cuda\.)?device_?count\(\)\s*(?:is|=|==|->|→|:|returns?|gives|says|prints?)\s*(?P<count>\d{1,2})\b|\bcuDeviceGetCount\b[^\n\d]{0,16}(?P<other>\d{1,2})\b" }

/// Enters the indices and counts of the line.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&DESERIALIZED, line.text) {
        wanted(&found["index"], line, facts);
        counted(&found["count"], line, facts);
        return;
    }
    for pattern in [&WANTED, &CALLED] {
        if let Some(found) = captures(pattern, line.text) {
            wanted(&found["index"], line, facts);
        }
    }
    if let Some(found) = captures(&COUNTED, line.text)
        && let Some(count) = found.name("count").or(found.name("other"))
    {
        counted(count.as_str(), line, facts);
    }
}

fn wanted(index: &str, line: &Line<'_>, facts: &mut Facts) {
    if let Ok(index) = index.parse() {
        push(&mut facts.process.ordinals_wanted, index, line);
    }
}

fn counted(count: &str, line: &Line<'_>, facts: &mut Facts) {
    if let Ok(count) = count.parse() {
        facts.cuda.count.or_better(Observed::seen(count, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn indices_and_counts() {
        assert!(
            [&WANTED, &CALLED, &DESERIALIZED, &COUNTED].iter().all(|pattern| pattern.is_some())
        );
        for (text, index) in [
            ("model.to('cuda:5')", 5),
            ("python train.py --gpu 3 --batch 8", 3),
            ("torch.cuda.set_device(7)", 7),
            ("CHECK(cudaSetDevice(2));", 2),
            ("net = DataParallel(net, device_ids=[4,5])", 4),
        ] {
            let facts = lines_of(text);
            assert_eq!(facts.process.ordinals_wanted[0].value, index, "{text}");
        }
        let facts = lines_of(
            "RuntimeError: Attempting to deserialize object on CUDA device 2 but torch.cuda.device_count() is 1. Please use torch.load",
        );
        assert_eq!(facts.process.ordinals_wanted[0].value, 2);
        assert_eq!(facts.cuda.count.value(), Some(&1));
    }
}
