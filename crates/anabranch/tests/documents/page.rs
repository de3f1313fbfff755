//! What a page shows: samples, and what of them lasts from run to run.

/// A command, and what a page says that it prints.
pub(crate) struct Sample {
    pub(crate) command: String,
    pub(crate) printed: Vec<String>,
}

/// The commands of a page, of whichever program, in their order.
pub(crate) fn commands(page: &str) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        if let Some(command) = line.strip_prefix("    $ ") {
            is_inside = true;
            samples.push(Sample { command: command.to_owned(), printed: Vec::new() });
        } else if is_inside && (line.is_empty() || line.starts_with("    ")) {
            let text = line.strip_prefix("    ").unwrap_or_default();
            samples.last_mut().unwrap().printed.push(text.to_owned());
        } else {
            is_inside = false;
        }
    }
    samples.iter_mut().for_each(|sample| drop_blank_end(&mut sample.printed));
    samples
}

/// The samples of a page in their order: its commands of the program, without the program's name.
pub(crate) fn samples(page: &str) -> Vec<Sample> {
    let of_program = |sample: Sample| {
        let command = sample.command.strip_prefix("anabranch ")?.to_owned();
        Some(Sample { command, ..sample })
    };
    commands(page).into_iter().filter_map(of_program).collect()
}

/// The sample of a page whose command begins so.
pub(crate) fn sample(page: &str, begin: &str) -> Sample {
    let found = samples(page).into_iter().find(|sample| sample.command.starts_with(begin));
    found.unwrap_or_else(|| panic!("no sample begins with {begin}"))
}

/// The lines that are set off next after the line that has these words.
pub(crate) fn block(page: &str, after: &str) -> Vec<String> {
    let mut lines = page.lines().skip_while(|line| !line.contains(after)).skip(1);
    let first = lines.by_ref().find(|line| line.starts_with("    "));
    let first = first.unwrap_or_else(|| panic!("nothing is set off after {after}"));
    let rest = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let lines = std::iter::once(first).chain(rest);
    let mut block: Vec<String> =
        lines.map(|line| line.strip_prefix("    ").unwrap_or_default().to_owned()).collect();
    drop_blank_end(&mut block);
    block
}

/// What stands between these fences, one text for each block of the language.
pub(crate) fn fenced(page: &str, language: &str) -> Vec<String> {
    let begin = format!("\n```{language}\n");
    let text = |rest: &str| rest.split("\n```").next().unwrap_or_default().to_owned();
    page.split(&begin).skip(1).map(text).collect()
}

fn drop_blank_end(lines: &mut Vec<String>) {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
}

/// The words of a command line, with quotes; redirections are the shell's.
pub(crate) fn words(line: &str) -> Vec<String> {
    let quoted = line.split(['"', '\'']).enumerate();
    let words = quoted.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().filter(|word| !word.contains('>')).map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// A line without what differs from run to run: numbers, ages and tokens.
pub(crate) fn lasting(line: &str) -> String {
    let mut lasting: Vec<String> = Vec::new();
    for word in line.trim_end().split(' ') {
        let is_token = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        match word {
            _ if is_token => lasting.push("TOKEN".to_owned()),
            _ if is_number => lasting.push("#".to_owned()),
            // 3 h 5 min and 0 s are one age.
            "h" | "min" | "s" if lasting.last().is_some_and(|last| last == "#") => {}
            _ => lasting.push(word.to_owned()),
        }
        if let [.., one, other] = &lasting[..]
            && (one, other) == (&"#".to_owned(), &"#".to_owned())
        {
            lasting.pop();
        }
    }
    lasting.join(" ")
}

/// Lines of which figures were measured: their cells, which two blanks or more part, with the shape of each figure. Words, names
/// and units stay, but a time may be in any unit, and so may a size.
pub(crate) fn shapes(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| shape(line)).collect()
}

fn shape(line: &str) -> String {
    let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(cell).collect::<Vec<_>>().join(" | ")
}

fn cell(cell: &str) -> String {
    match cell {
        "-" => return "#".to_owned(), // a figure that there is not
        // What a client, or a card, can.
        "yes" | "no" => return "YES".to_owned(),
        _ => {}
    }
    let is_effect = cell.contains("x (95 %: ") && cell.starts_with(|c: char| c.is_ascii_digit());
    if is_effect {
        return "EFFECT".to_owned();
    }
    if let Some(rest) =
        ["no measurable effect", "too noisy to tell"].iter().find_map(|none| cell.strip_prefix(none))
    {
        return format!("EFFECT{rest}");
    }
    let mut words: Vec<String> = Vec::new();
    for word in cell.split(' ') {
        let shape = figures(word);
        let is_figure = words.last().is_some_and(|last| last == "#");
        let (unit, rest) = shape.split_once(',').unwrap_or((&shape, ""));
        let shape = match unit {
            "us" | "ms" | "s" | "min" | "h" if is_figure => format!("TIME{rest}"),
            "B" | "KiB" | "MiB" | "GiB" | "TiB" if is_figure => format!("SIZE{rest}"),
            _ => shape,
        };
        words.push(shape);
    }
    let joined = words.join(" ");
    let joined = joined.replace("# TIME - # TIME", "# TIME").replace("# TIME # TIME", "# TIME");
    COUNTED.iter().fold(joined, |cell, (one, many)| cell.replace(&format!("# {many}"), &format!("# {one}")))
}

/// What is counted: one, and several.
const COUNTED: [(&str, &str); 6] = [
    ("file or directory", "files and directories"),
    ("directory", "directories"),
    ("operation", "operations"),
    ("hit", "hits"),
    ("miss", "misses"),
    ("change", "changes"),
];

/// A word in which each figure is a `#`.
fn figures(word: &str) -> String {
    let is_id = |text: &str| text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if word.starts_with("0x") || is_id(word) {
        return "ID".to_owned();
    }
    // The parts of a row's name, and the values of a plan, are as they were given.
    if word.contains('=') {
        return word.to_owned();
    }
    let mut shape = String::new();
    for c in word.chars() {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            '.' | ',' if shape.ends_with('#') => shape.push(c),
            _ => shape.push(c),
        }
        for separated in ["#.#", "#,#"] {
            if let Some(rest) = shape.strip_suffix(separated) {
                shape = format!("{rest}#");
            }
        }
    }
    shape
}

#[test]
fn figures_have_a_shape_and_words_stay() {
    let shapes = |text: &str| shape(text);
    assert_eq!(shapes("a=1 b=4KiB  227108  151898-294515  887.1"), "a=1 b=4KiB | # | #-# | #");
    assert_eq!(
        shapes("Read  smb  1  292.9 KiB  32.60 ms  0 us  5 %"),
        "Read | smb | # | # SIZE | # TIME | # TIME | # %"
    );
    assert_eq!(shapes("x  1.45x (95 %: 0.77 to 3.01)"), shapes("x  no measurable effect"));
    assert_eq!(shapes("x  too noisy to tell"), shapes("x  no measurable effect"));
    assert_eq!(shapes("0x5b8de400  anna  10.0.2.15:43100  -"), "ID | anna | #:# | #");
    assert_eq!(shapes("1 KiB, 7 files and directories"), shapes("2 MiB, 1 file or directory"));
    assert_eq!(shapes("about 1,234 of 10.0.2.2, and 3.1.1;"), "about # of #, and #;");
}
