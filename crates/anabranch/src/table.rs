//! Columns for people.

/// What stands between two columns.
const GAP: &str = "  ";

/// A table with aligned columns, each as wide as its widest cell.
pub(crate) fn render<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(heads.get(column).map(|head| head.len())).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = line(&heads, &widths);
    for row in rows {
        text.push_str(&line(
            &std::array::from_fn::<&str, N, _>(|i| row.get(i).map_or("", String::as_str)),
            &widths,
        ));
    }
    text
}

fn line<const N: usize>(cells: &[&str; N], widths: &[usize; N]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    let mut line = cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows =
            [["a", "\u{e4}\u{e4}\u{e4}\u{e4}", "1"], ["bbb", "", "22"]].map(|row| row.map(str::to_owned));
        let expected = "ONE  TWO   N\na    \u{e4}\u{e4}\u{e4}\u{e4}  1\nbbb        22\n";
        assert_eq!(render(["ONE", "TWO", "N"], &rows), expected);
        assert_eq!(render(["ONE"], &[]), "ONE\n");
    }
}
