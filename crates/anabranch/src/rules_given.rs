//! Who may use a share, as flags say it.

use clap::Args;
use control::shares::RulesChange;

/// The flags of `share create` and `share set` that say who may use the share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RulesGiven {
    /// The protocols over which the share is served [default: smb,nfs]
    #[arg(long, value_name = "smb|nfs|smb,nfs")]
    pub(crate) protocols: Option<String>,
    /// The clients of a network and how they may use the share, for example "10.0.0.0/8 access=ro squash=all", or NFS clients with a
    /// name in their certificates, "cert:*.example.org"; the first match applies, and all other clients are refused ("" removes the list) [default: everybody]
    #[arg(long, value_name = "NETWORK [access=rw|ro] [squash=none|root|all] [protocols=...] [secure-port]")]
    pub(crate) client: Vec<String>,
    /// Users, system groups (@NAME) and SIDs that may read; users in none of the lists of the share are refused ("" removes the
    /// list) [default: everybody]
    #[arg(long, value_name = "NAME,@GROUP,...", value_delimiter = ',')]
    pub(crate) read: Vec<String>,
    /// Users and groups that may read and write; with --elevated or --admin, these do not change permissions
    #[arg(long, value_name = "NAME,@GROUP,...", value_delimiter = ',')]
    pub(crate) write: Vec<String>,
    /// Users and groups that may also change permissions, where the permissions of files allow that
    #[arg(long, value_name = "NAME,@GROUP,...", value_delimiter = ',')]
    pub(crate) elevated: Vec<String>,
    /// Users and groups that may do everything in the share, whatever the permissions of files say
    #[arg(long, value_name = "NAME,@GROUP,...", value_delimiter = ',')]
    pub(crate) admin: Vec<String>,
    /// The role of users in none of the lists, except guests ("" removes it) [default: none if there is a list]
    #[arg(long, value_name = "none|reader|contributor|elevated|admin")]
    pub(crate) default_role: Option<String>,
}

impl RulesGiven {
    /// What becomes of the rules.
    pub(crate) fn change(&self) -> RulesChange {
        let split = |names: &String| names.split(',').map(|name| name.trim().to_owned()).collect();
        RulesChange {
            protocols: self.protocols.as_ref().map(split),
            clients: given(&self.client),
            read: given(&self.read),
            write: given(&self.write),
            elevated: given(&self.elevated),
            admin: given(&self.admin),
            default_role: self.default_role.clone(),
        }
    }
}

/// A list that was given; one empty word is an empty list.
pub(crate) fn given(words: &[String]) -> Option<Vec<String>> {
    let words_left = || words.iter().filter(|word| !word.trim().is_empty()).cloned().collect();
    (!words.is_empty()).then(words_left)
}

#[cfg(test)]
mod tests {
    use control::shares::Rules as Written;

    use super::*;

    #[test]
    fn an_empty_word_takes_a_list_away() {
        let flags = |client: &[&str]| {
            let client = client.iter().map(|&word| word.to_owned()).collect();
            RulesGiven { client, ..RulesGiven::default() }.change()
        };
        let had = Written { clients: vec!["*".to_owned()], ..Written::default() };
        assert_eq!(flags(&[]).of(&had), had);
        assert_eq!(flags(&[""]).of(&had).clients, Vec::<String>::new());
        assert_eq!(flags(&["10.0.0.1", "10.0.0.2"]).of(&had).clients, ["10.0.0.1", "10.0.0.2"]);
    }
}
