//! Channels of a session: the connections that it uses. [MS-SMB2] 3.3.1.14.

use std::sync::Arc;

use crate::dialect::{Dialect, SigningAlgorithm};
use crate::keys::channel_signing_key;
use crate::preauth::PreauthHash;
use crate::signing::{SignatureError, SigningKey};

/// One connection of a session, with its own Channel.SigningKey.
#[derive(Debug)]
pub struct Channel {
    /// The server's number for the connection.
    pub connection: u64,
    /// The key that signs this session's messages on this connection; `None` where authentication produced no key
    /// (anonymous and guest sessions).
    pub signing: Option<SigningKey>,
}

impl Channel {
    /// The first channel of a session: Channel.SigningKey is Session.SigningKey.
    ///
    /// # Errors
    /// [`SignatureError::Library`] if the library cannot prepare the key.
    pub fn first(
        connection: u64,
        algorithm: SigningAlgorithm,
        session_signing_key: &[u8; 16],
    ) -> Result<Self, SignatureError> {
        let signing = SigningKey::new(algorithm, session_signing_key)?;
        Ok(Self { connection, signing: Some(signing) })
    }

    /// A further channel. Its key is derived from the key of the binding's own authentication and, in SMB 3.1.1, from
    /// the binding's own preauthentication chain. [MS-SMB2] 3.3.5.5.3.
    ///
    /// # Errors
    /// [`SignatureError::Library`] if the library cannot prepare the key.
    pub fn bind(
        connection: u64,
        dialect: Dialect,
        algorithm: SigningAlgorithm,
        authenticated: &[u8],
        preauth: &PreauthHash,
    ) -> Result<Self, SignatureError> {
        let key = channel_signing_key(dialect, authenticated, preauth);
        Self::first(connection, algorithm, &key)
    }
}

/// The session may have no further channel: STATUS_INSUFFICIENT_RESOURCES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many channels in the session")]
pub struct TooManyChannels;

/// Session.ChannelList: one channel for each connection that the session uses.
#[derive(Debug)]
pub struct ChannelList {
    channels: Vec<Arc<Channel>>,
    channels_max: usize,
}

impl ChannelList {
    /// An empty list of at most `channels_max` channels.
    pub fn new(channels_max: usize) -> Self {
        Self { channels: Vec::new(), channels_max }
    }

    /// Adds a channel, or replaces the one of the same connection.
    ///
    /// # Errors
    /// [`TooManyChannels`] at the limit, with the list unchanged.
    pub fn insert(&mut self, channel: Arc<Channel>) -> Result<(), TooManyChannels> {
        let full = self.is_full();
        match self.channels.iter_mut().find(|known| known.connection == channel.connection) {
            Some(known) => *known = channel,
            None if full => return Err(TooManyChannels),
            None => self.channels.push(channel),
        }
        Ok(())
    }

    /// The channel on a connection.
    pub fn find(&self, connection: u64) -> Option<&Arc<Channel>> {
        self.channels.iter().find(|channel| channel.connection == connection)
    }

    /// Removes the channel of a connection that is gone.
    pub fn remove(&mut self, connection: u64) -> Option<Arc<Channel>> {
        let index = self.channels.iter().position(|channel| channel.connection == connection)?;
        Some(self.channels.remove(index))
    }

    /// Every channel, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.channels.iter()
    }

    /// How many channels the session may have.
    pub fn channels_max(&self) -> usize {
        self.channels_max
    }

    /// Whether the session has as many channels as it may have.
    pub fn is_full(&self) -> bool {
        self.channels.len() >= self.channels_max
    }

    /// How many channels there are.
    pub fn len(&self) -> usize {
        self.channels.len()
    }

    /// Whether no connection is left: the session ends.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(connection: u64) -> Arc<Channel> {
        Arc::new(Channel { connection, signing: None })
    }

    #[test]
    fn a_connection_has_one_channel_and_their_number_is_limited() {
        let mut list = ChannelList::new(2);
        assert!(list.insert(channel(1)).is_ok() && list.insert(channel(2)).is_ok());
        assert_eq!(list.insert(channel(3)), Err(TooManyChannels));
        assert_eq!(list.insert(channel(2)), Ok(()));
        assert_eq!(list.iter().map(|channel| channel.connection).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(list.remove(1).map(|channel| channel.connection), Some(1));
        assert!(list.find(1).is_none() && list.find(2).is_some() && list.remove(1).is_none());
        assert_eq!((list.len(), list.is_empty()), (1, false));
    }
}
