//! The tokens of [`Administration`].

use std::time::SystemTime;

use control::tokens::{KnownToken, MadeToken, NewToken, TokenInfo};
use control::{Refusal, RefusalKind, Token};
use state::TokenRecord;

use super::{Administration, failed, invalid};

type Result<T> = std::result::Result<T, Refusal>;

/// The most tokens that can be created.
const TOKENS_MAX: usize = 1000;
/// The longest name of a token, in bytes.
const NAME_MAX: usize = 64;

impl Administration {
    fn made_tokens(&self) -> Result<Vec<TokenRecord>> {
        self.state.made_tokens().map_err(failed)
    }

    pub(super) fn all_tokens(&self) -> Result<Vec<TokenInfo>> {
        let mut tokens: Vec<TokenInfo> = self.made_tokens()?.into_iter().map(tell).collect();
        tokens.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tokens)
    }

    pub(super) fn enter_token(&self, new: &NewToken) -> Result<MadeToken> {
        let changing = self.idle.lock();
        check_name(&new.name)?;
        let made = self.made_tokens()?;
        if let Some(taken) = made.iter().find(|token| token.name.eq_ignore_ascii_case(&new.name)) {
            let name = &taken.name;
            let advice = format!("Take another name, or remove that one: anabranch token remove {name}");
            return Err(Refusal::new(
                RefusalKind::NameTaken,
                format!("there is a token {name} already"),
                advice,
            ));
        }
        if made.len() >= TOKENS_MAX {
            let what = format!("there are {TOKENS_MAX} tokens already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random)
            .map_err(|e| Refusal::new(RefusalKind::Failed, format!("no random numbers: {e}"), ""))?;
        let token = Token::new(random);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let record = TokenRecord {
            name: new.name.clone(),
            scope: new.scope,
            digest: token.digest(),
            made: since.map_or(0, |since| since.as_secs()),
        };
        self.state.keep_token(&record).map_err(failed)?;
        if let Some(serving) = &self.serving {
            serving.tokens.take(known(&record));
        }
        drop(changing);
        tracing::info!(token = record.name, scope = %record.scope, "a token was created");
        let TokenInfo { name, scope, made } = tell(record);
        Ok(MadeToken { name, scope, made, token: token.as_str().to_owned() })
    }

    pub(super) fn end_token(&self, name: &str) -> Result<TokenInfo> {
        let changing = self.idle.lock();
        let found = self.made_tokens()?.into_iter().find(|token| token.name.eq_ignore_ascii_case(name));
        let record = found.ok_or_else(|| {
            let what = format!("there is no token {name}");
            Refusal::new(RefusalKind::NotFound, what, "`anabranch token list` lists the tokens.")
        })?;
        self.state.forget_token(&record.name).map_err(failed)?;
        if let Some(serving) = &self.serving {
            serving.tokens.withdraw(&record.name);
        }
        drop(changing);
        tracing::info!(token = record.name, "a token was revoked");
        Ok(tell(record))
    }
}

/// A token as the server knows it.
pub(crate) fn known(record: &TokenRecord) -> KnownToken {
    KnownToken { name: record.name.clone(), scope: record.scope, digest: record.digest }
}

fn tell(record: TokenRecord) -> TokenInfo {
    TokenInfo { name: record.name, scope: record.scope, made: record.made }
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let advice = format!("A name has 1 to {NAME_MAX} letters, digits, hyphens, dots and underscores.");
    Err(invalid(format!("{name:?} cannot be the name of a token"), advice))
}
