use super::*;

const MARKED: &str = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.";

fn small() -> TextLimits {
    TextLimits {
        whole_bytes: 4 << 10,
        end_bytes: 1 << 10,
        between_bytes: 1 << 20,
        read_bytes: 1 << 30,
    }
}

/// Numbered lines, of which those in `marked` name the driver.
fn log(count: u32, marked: &[u32]) -> Vec<u8> {
    let text = |line: u32| if marked.contains(&line) { MARKED } else { "usb 1-2: new device" };
    (1..=count).flat_map(|line| format!("{line:07} {}\n", text(line)).into_bytes()).collect()
}

/// Each kept line with the number under which a reader would cite it.
fn cited(kept: &Kept) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for part in &kept.parts {
        let text = String::from_utf8_lossy(&part.bytes).into_owned();
        let numbered = (part.first_line..).zip(text.lines().map(str::to_owned));
        found.extend(numbered.filter(|(_, line)| !line.is_empty()));
    }
    found
}

#[test]
fn a_short_text_is_kept_whole() {
    for content in [Vec::new(), log(10, &[]), log(100, &[3])] {
        let limits = TextLimits { whole_bytes: content.len(), ..small() };
        let kept = sift(&*content, &limits);
        assert_eq!(kept.parts, [Part { bytes: Arc::from(content), first_line: 1 }]);
        assert!(!kept.partial);
    }
}

#[test]
fn of_a_long_text_the_ends_and_the_marked_lines_are_kept_under_their_numbers() {
    let marked = [40_000, 40_002, 40_050, 90_000, 99_900];
    let kept = sift(&*log(200_000, &marked), &small());
    let lines = cited(&kept);
    for (number, line) in &lines {
        assert!(line.starts_with(&format!("{number:07}")), "{number} is {line}");
    }
    let found: Vec<u32> =
        lines.iter().filter(|(_, l)| l.contains("Xid")).map(|(n, _)| *n).collect();
    assert_eq!(found, marked);
    let between = lines.iter().filter(|(number, _)| (1000..199_000).contains(number)).count();
    // Each with one line before and three after; two stand together.
    assert_eq!(between, 5 * 5 - 3);
    assert_eq!((lines[0].0, lines[lines.len() - 1].0), (1, 200_000));
    // The ends, two marks near each other, and two alone.
    assert_eq!(kept.parts.len(), 5);
    assert!(kept.partial);
}

#[test]
fn a_flood_of_marked_lines_ends_and_the_end_of_the_text_is_kept_all_the_same() {
    let all: Vec<u32> = (1..=20_000).collect();
    let limits = TextLimits { between_bytes: 100 << 10, ..small() };
    let kept = sift(&*log(20_000, &all), &limits);
    let size: usize = kept.parts.iter().map(|part| part.bytes.len()).sum();
    assert!(size < 110 << 10, "{size}");
    assert_eq!(cited(&kept).last().unwrap().0, 20_000);
}

#[test]
fn an_endless_line_and_an_endless_text_are_bounded() {
    let limits = TextLimits { read_bytes: 20 << 20, ..small() };
    for byte in [b'x', b'\n', 0] {
        let kept = sift(std::io::repeat(byte), &limits);
        let size: usize = kept.parts.iter().map(|part| part.bytes.len()).sum();
        assert!(kept.partial && size < 3 << 20, "{byte} {size}");
    }
    let mut line = vec![b'x'; 5 << 20];
    line.extend_from_slice(b" NVRM: at the end\nnext\n");
    line.extend(log(1000, &[]));
    let lines = cited(&sift(&*line, &small()));
    assert!(lines.iter().any(|(number, text)| *number == 2 && text == "next"));
}

#[test]
fn text_of_two_bytes_a_letter_is_read_all_the_same() {
    let text = String::from_utf8(log(5000, &[2500])).unwrap();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let lines = cited(&sift(&*wide, &small()));
    assert!(lines.iter().any(|(number, line)| *number == 2500 && line.contains("Xid")));
}

#[test]
fn the_name_of_the_machine_marks_no_line() {
    let text = String::from_utf8(log(50_000, &[25_000])).unwrap();
    let mut named = String::new();
    for line in text.lines() {
        named.extend(["Nov 30 08:36:01 gpu7 kernel: ", line, "\n"]);
    }
    let kept = sift(named.as_bytes(), &small());
    let size: usize = kept.parts.iter().map(|part| part.bytes.len()).sum();
    assert!(size < 4 << 10, "{size}");
    assert!(cited(&kept).iter().any(|(number, line)| *number == 25_000 && line.contains("Xid")));
}

#[test]
fn chatter_about_gpus_leaves_room_for_the_kernel() {
    let text = String::from_utf8(log(50_000, &[49_000])).unwrap();
    let chatty = text.replace("usb 1-2: new device", "the GPU is fine");
    let limits = TextLimits { between_bytes: 100 << 10, ..small() };
    let kept = sift(chatty.as_bytes(), &limits);
    assert!(cited(&kept).iter().any(|(number, line)| *number == 49_000 && line.contains("Xid")));
}
