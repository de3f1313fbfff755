//! Requests under way: Connection.RequestList and Connection.AsyncCommandList. [MS-SMB2] 3.3.1.7, 3.3.1.13, 3.3.4.2,
//! 3.3.5.16.
//!
//! Only requests that can wait need to be listed: those that a CANCEL may find. The server decides what is stored with
//! each of them (a way to tell its handler to stop).

use std::collections::HashMap;

/// How a CANCEL names its request. [MS-SMB2] 3.3.5.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelTarget {
    /// SMB2_FLAGS_ASYNC_COMMAND is not set: the MessageId of the request.
    Message(u64),
    /// SMB2_FLAGS_ASYNC_COMMAND is set: the AsyncId of its interim response.
    Async(u64),
}

/// No further request of this connection may wait: STATUS_INSUFFICIENT_RESOURCES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests of this connection are waiting")]
pub struct TooManyWaiting;

#[derive(Debug)]
struct Listed<T> {
    async_id: Option<u64>,
    value: T,
}

/// The requests of one connection that are under way.
#[derive(Debug)]
pub struct RequestList<T> {
    by_message: HashMap<u64, Listed<T>>,
    message_of: HashMap<u64, u64>,
    next_async_id: u64,
    waiting_max: usize,
}

impl<T> RequestList<T> {
    /// An empty list; at most `waiting_max` of its requests may be asynchronous at a time.
    pub fn new(waiting_max: usize) -> Self {
        Self { by_message: HashMap::new(), message_of: HashMap::new(), next_async_id: 1, waiting_max }
    }

    /// Lists a request. The sequence window guarantees that the MessageId is unique on the connection.
    pub fn insert(&mut self, message_id: u64, value: T) {
        self.by_message.insert(message_id, Listed { async_id: None, value });
    }

    /// Gives a listed request an AsyncId for its interim response, since its final response will take time. A request
    /// that has an AsyncId keeps it. A request that is not listed gets an AsyncId that no CANCEL finds.
    ///
    /// # Errors
    /// [`TooManyWaiting`] at the limit. The request does not change.
    pub fn make_async(&mut self, message_id: u64) -> Result<u64, TooManyWaiting> {
        if let Some(id) = self.by_message.get(&message_id).and_then(|listed| listed.async_id) {
            return Ok(id);
        }
        if self.message_of.len() >= self.waiting_max {
            return Err(TooManyWaiting);
        }
        let async_id = self.next_async_id;
        self.next_async_id += 1;
        if let Some(listed) = self.by_message.get_mut(&message_id) {
            listed.async_id = Some(async_id);
            self.message_of.insert(async_id, message_id);
        }
        Ok(async_id)
    }

    /// The request that a CANCEL names, if it is still under way. It stays listed, since its handler answers it.
    pub fn find(&self, target: CancelTarget) -> Option<&T> {
        let message_id = match target {
            CancelTarget::Message(message_id) => message_id,
            CancelTarget::Async(async_id) => *self.message_of.get(&async_id)?,
        };
        self.by_message.get(&message_id).map(|listed| &listed.value)
    }

    /// Removes an answered request from the list.
    pub fn remove(&mut self, message_id: u64) -> Option<T> {
        let listed = self.by_message.remove(&message_id)?;
        if let Some(async_id) = listed.async_id {
            self.message_of.remove(&async_id);
        }
        Some(listed.value)
    }

    /// Every request under way, for a connection or session that ends.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.by_message.values().map(|listed| &listed.value)
    }

    /// How many requests are listed.
    pub fn len(&self) -> usize {
        self.by_message.len()
    }

    /// Whether no request is listed.
    pub fn is_empty(&self) -> bool {
        self.by_message.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_finds_a_request_by_either_name() {
        let mut list = RequestList::new(8);
        list.insert(7, "notify");
        list.insert(8, "lock");
        let async_id = list.make_async(8).unwrap();
        assert_ne!(async_id, 0);
        assert_eq!(list.make_async(8), Ok(async_id));
        assert_eq!(list.find(CancelTarget::Message(7)), Some(&"notify"));
        assert_eq!(list.find(CancelTarget::Async(async_id)), Some(&"lock"));
        assert_eq!(list.find(CancelTarget::Message(8)), Some(&"lock"));
        assert_eq!(list.find(CancelTarget::Message(9)), None);
        assert_eq!(list.find(CancelTarget::Async(7)), None);
    }

    #[test]
    fn an_answered_request_cannot_be_cancelled() {
        let mut list = RequestList::new(8);
        list.insert(7, ());
        let async_id = list.make_async(7).unwrap();
        assert_eq!(list.remove(7), Some(()));
        assert_eq!(list.find(CancelTarget::Async(async_id)), None);
        assert_eq!(list.find(CancelTarget::Message(7)), None);
        assert_eq!(list.remove(7), None);
        assert!(list.is_empty());
        list.insert(9, ());
        assert_ne!(list.make_async(9), Ok(async_id), "an AsyncId is not used twice");
    }

    #[test]
    fn the_number_of_waiting_requests_is_limited() {
        let mut list = RequestList::new(2);
        for id in 0..3 {
            list.insert(id, ());
        }
        assert!(list.make_async(0).is_ok() && list.make_async(1).is_ok());
        assert_eq!(list.make_async(2), Err(TooManyWaiting));
        list.remove(0);
        assert!(list.make_async(2).is_ok());
        assert_eq!((list.len(), list.iter().count()), (2, 2));
    }
}
