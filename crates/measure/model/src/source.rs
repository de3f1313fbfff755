//! Where a parameter is published, and which statements a model is about.

use advise::{document_of, title};
use serde::Deserialize;

/// Where a parameter is published.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Source {
    /// A document that the report is about.
    Document {
        /// The statement's number, such as `2.08`.
        statement: String,
        /// The line of the document.
        line: u32,
        /// What it says there.
        says: String,
    },
    /// Another page of the vendor.
    Page {
        /// Its address.
        page: String,
        /// What it says.
        says: String,
    },
}

/// A source as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    statement: Option<String>,
    line: Option<u32>,
    page: Option<String>,
    says: String,
}

impl TryFrom<Written> for Source {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let says = written.says;
        match (written.statement, written.line, written.page) {
            (Some(statement), Some(line), None) if document_of(&statement).is_some() => {
                Ok(Self::Document { statement, line, says })
            }
            (None, None, Some(page)) if page.starts_with("https://") => Ok(Self::Page { page, says }),
            _ => Err("a source has the statement and the line of a document (statement = \"2.08\", line = 42), or a page (page = \"https://...\")".to_owned()),
        }
    }
}

/// A statement that the model's rows speak to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Statement {
    /// Its number, such as `2.07`.
    pub id: String,
    /// The line of the document.
    pub line: u32,
    /// Which part of it is a parameter of the model, and so counts for nothing; none where nothing is.
    pub by_construction: Option<String>,
}

impl Source {
    /// What it says, and where.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Document { statement, line, says } => format!("{says}: {}", place(statement, *line)),
            Self::Page { page, says } => format!("{says}: {page}"),
        }
    }
}

impl Statement {
    /// The document and the section that it is in, and its number.
    #[must_use]
    pub fn place(&self) -> String {
        place(&self.id, self.line)
    }
}

/// The title of the document, the heading of the section, and the number of the statement.
fn place(id: &str, line: u32) -> String {
    match document_of(id).and_then(|document| document.section_at(line)) {
        Some(section) => format!("{}, \"{}\" ({id})", title(id), section.heading),
        None => format!("{} ({id})", title(id)),
    }
}
