//! The models that come with the program.

/// Their names and descriptions.
pub const BUILT_IN: [(&str, &str); 7] = [
    ("azure-files-smb", include_str!("../models/azure-files-smb.toml")),
    ("netapp-smb", include_str!("../models/netapp-smb.toml")),
    ("netapp-smb-scale-out", include_str!("../models/netapp-smb-scale-out.toml")),
    ("azure-files-nfs", include_str!("../models/azure-files-nfs.toml")),
    ("netapp-linux", include_str!("../models/netapp-linux.toml")),
    ("azure-files-metadata", include_str!("../models/azure-files-metadata.toml")),
    ("azure-files-metadata-cached", include_str!("../models/azure-files-metadata-cached.toml")),
];

#[cfg(test)]
mod tests {
    use load::plan::Extent;

    use crate::read;

    use super::*;

    #[test]
    fn each_model_has_its_name_rows_and_a_source_for_each_parameter() {
        for (name, text) in BUILT_IN {
            let model = read(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(model.name, name);
            assert!(!model.plans(&Extent::new(true)).is_empty(), "{name} has no quick row");
            assert!(!model.statements.is_empty(), "{name} is about nothing");
            for parameter in model.parameters() {
                assert!(parameter.source.is_some(), "{name}: where is {} published?", parameter.name);
            }
            for statement in &model.statements {
                assert!(statement.place().contains('"'), "{name}: {} has no section", statement.id);
            }
        }
    }
}
