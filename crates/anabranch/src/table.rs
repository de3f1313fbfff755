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

/// The same. A row of a vserver says of which, in a column after the first one. Without such a row, there is no such column.
pub(crate) fn with_vservers<const N: usize>(
    heads: [&'static str; N],
    rows: &[(Option<&str>, [String; N])],
) -> String {
    let has_vserver = rows.iter().any(|(vserver, _)| vserver.is_some());
    let mut columns = heads.map(Column::always).to_vec();
    let mut cells: Vec<Vec<String>> = rows.iter().map(|(_, row)| row.to_vec()).collect();
    if has_vserver {
        columns.insert(1, Column::always("VSERVER"));
        for (row, (vserver, _)) in cells.iter_mut().zip(rows) {
            row.insert(1, vserver.unwrap_or("-").to_owned());
        }
    }
    within(usize::MAX, &columns, &cells)
}

/// A column of a table that must fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    /// 0: the column is always shown; of the others, the highest goes first.
    dispensable: u8,
}

impl Column {
    /// A column that is always shown.
    pub(crate) const fn always(head: &'static str) -> Self {
        Self { head, dispensable: 0 }
    }

    /// A column that is left out if there is no room for it; those with higher ranks go first.
    pub(crate) const fn if_room(head: &'static str, rank: u8) -> Self {
        Self { head, dispensable: rank }
    }
}

/// A table that is no wider than `width`, as far as columns can be left out.
pub(crate) fn within(width: usize, columns: &[Column], rows: &[Vec<String>]) -> String {
    let width_of = |index: usize, column: &Column| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
        cells.chain([column.head.len()]).max().unwrap_or(0)
    };
    let mut shown: Vec<(usize, &Column, usize)> =
        columns.iter().enumerate().map(|(index, column)| (index, column, width_of(index, column))).collect();
    let total = |shown: &[(usize, &Column, usize)]| {
        shown.iter().map(|(_, _, width)| width + GAP.len()).sum::<usize>().saturating_sub(GAP.len())
    };
    while total(&shown) > width {
        let first = shown.iter().map(|(_, column, _)| column.dispensable).max().unwrap_or(0);
        if first == 0 {
            break;
        }
        shown.retain(|(_, column, _)| column.dispensable != first);
    }
    let widths: Vec<usize> = shown.iter().map(|(_, _, width)| *width).collect();
    let heads: Vec<&str> = shown.iter().map(|(_, column, _)| column.head).collect();
    let cells = |row: &Vec<String>| {
        let cells: Vec<&str> =
            shown.iter().map(|(index, ..)| row.get(*index).map_or("", String::as_str)).collect();
        line(&cells, &widths)
    };
    line(&heads, &widths) + &rows.iter().map(cells).collect::<String>()
}

fn line(cells: &[&str], widths: &[usize]) -> String {
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

    #[test]
    fn vservers_have_a_column_if_there_is_one() {
        let row = |vserver, share: &str, size: &str| (vserver, [share.to_owned(), size.to_owned()]);
        let heads = ["SHARE", "SIZE"];
        assert_eq!(with_vservers(heads, &[row(None, "data", "1")]), "SHARE  SIZE\ndata   1\n");
        let rows = [row(None, "data", "1"), row(Some("files"), "data", "22")];
        let expected = "SHARE  VSERVER  SIZE\ndata   -        1\ndata   files    22\n";
        assert_eq!(with_vservers(heads, &rows), expected);
    }

    #[test]
    fn columns_without_room_are_left_out() {
        let columns = [Column::always("ONE"), Column::if_room("TWO", 1), Column::if_room("THREE", 2)];
        let rows = [["a", "b", "c"].map(str::to_owned).to_vec()];
        assert_eq!(within(15, &columns, &rows), "ONE  TWO  THREE\na    b    c\n");
        assert_eq!(within(14, &columns, &rows), "ONE  TWO\na    b\n");
        assert_eq!(within(7, &columns, &rows), "ONE\na\n");
        assert_eq!(within(1, &columns, &rows), "ONE\na\n");
    }
}
