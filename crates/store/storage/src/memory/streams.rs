//! Named streams: objects that are in no directory and are named by their object.

use super::State;
use super::data::Data;
use super::object::{Content, Object};
use crate::{Error, ObjectId, Replace, Result, StreamEntry};

impl State {
    /// The object, if it is of a kind that has named streams.
    fn with_streams(&self, id: ObjectId) -> Result<&Object> {
        let object = self.object(id)?;
        object.check_carries_xattrs()?;
        Ok(object)
    }

    /// As [`State::with_streams`], to change the streams.
    fn streams_of(&mut self, id: ObjectId) -> Result<&mut Object> {
        let object = self.object_mut(id)?;
        object.check_carries_xattrs()?;
        Ok(object)
    }

    pub(super) fn streams(&self, id: ObjectId) -> Result<Vec<StreamEntry>> {
        let streams = &self.with_streams(id)?.streams;
        let entry = |(name, stream): (&Vec<u8>, &ObjectId)| {
            let known = self.object(*stream)?.attributes(crate::Want::empty());
            Ok(StreamEntry { name: name.clone(), size: known.size, allocated: known.allocated })
        };
        streams.iter().map(entry).collect()
    }

    pub(super) fn stream(&self, id: ObjectId, name: &[u8]) -> Result<ObjectId> {
        self.with_streams(id)?.streams.get(name).copied().ok_or(Error::NotFound)
    }

    pub(super) fn create_stream(&mut self, id: ObjectId, name: &[u8]) -> Result<ObjectId> {
        let object = self.streams_of(id)?;
        if object.streams.contains_key(name) {
            return Err(Error::Exists);
        }
        if object.names.is_empty() && id != super::ROOT {
            return Err(Error::Stale);
        }
        let stream = self.new_id(id)?;
        let mut new = Object::new(stream, Content::Data(Data::default()), self.now());
        new.names.push((id, name.to_vec()));
        self.objects.insert(stream, new);
        self.streams_of(id)?.streams.insert(name.to_vec(), stream);
        Ok(stream)
    }

    pub(super) fn remove_stream(&mut self, id: ObjectId, name: &[u8]) -> Result<()> {
        let stream = self.streams_of(id)?.streams.remove(name).ok_or(Error::NotFound)?;
        self.leave_stream(stream);
        Ok(())
    }

    pub(super) fn rename_stream(
        &mut self,
        id: ObjectId,
        name: &[u8],
        to: &[u8],
        replace: Replace,
    ) -> Result<()> {
        let streams = &mut self.streams_of(id)?.streams;
        let stream = *streams.get(name).ok_or(Error::NotFound)?;
        if replace == Replace::Never && streams.contains_key(to) {
            return Err(Error::Exists);
        }
        streams.remove(name);
        let replaced = streams.insert(to.to_vec(), stream);
        if let Some(replaced) = replaced.filter(|replaced| *replaced != stream) {
            self.leave_stream(replaced);
        }
        self.object_mut(stream)?.names = vec![(id, to.to_vec())];
        Ok(())
    }

    /// A stream has lost its name.
    pub(super) fn leave_stream(&mut self, stream: ObjectId) {
        if let Some(object) = self.objects.get_mut(&stream) {
            object.names.clear();
        }
        self.free_unused(stream);
    }
}
