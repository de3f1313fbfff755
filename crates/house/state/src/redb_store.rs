//! [`Store`] in a database of redb: one file, or bytes in memory.

use std::fmt;
use std::sync::Arc;

use redb::{
    Database, Key, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError,
    TableHandle, Value, WriteTransaction,
};

use crate::store::{Batch, Change, Form, KeyValue, Store, StoreError, Table};

/// A database of redb.
#[derive(Clone)]
pub(crate) struct RedbStore(pub(crate) Arc<Database>);

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedbStore")
    }
}

type Found = Result<Option<Vec<u8>>, StoreError>;

/// Calls a function with the types that a table of this form has on the disk.
macro_rules! typed {
    ($form:expr, $call:ident($($argument:expr),*)) => {
        match $form {
            Form::TextToBytes => $call::<&str, &[u8]>($($argument),*),
            Form::TextToU32 => $call::<&str, u32>($($argument),*),
            Form::TextToU64 => $call::<&str, u64>($($argument),*),
            Form::TextToHash => $call::<&str, [u8; 16]>($($argument),*),
            Form::NumberToBytes => $call::<u64, &[u8]>($($argument),*),
            Form::BytesToNothing => $call::<&[u8], ()>($($argument),*),
        }
    };
}

fn value_of<K: Key + 'static, V: Value + 'static>(table: &impl ReadableTable<K, V>, key: &[u8]) -> Found {
    let found = table.get(K::from_bytes(key))?;
    Ok(found.map(|found| V::as_bytes(&found.value()).as_ref().to_vec()))
}

fn read<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    name: &str,
    key: &[u8],
) -> Found {
    match transaction.open_table(TableDefinition::<K, V>::new(name)) {
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        table => value_of(&table?, key),
    }
}

fn scan<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    name: &str,
) -> Result<Vec<KeyValue>, StoreError> {
    let table = match transaction.open_table(TableDefinition::<K, V>::new(name)) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    let bytes = |entry: Result<(redb::AccessGuard<'_, K>, redb::AccessGuard<'_, V>), redb::StorageError>| {
        let (key, value) = entry?;
        let (key, value) =
            (K::as_bytes(&key.value()).as_ref().to_vec(), V::as_bytes(&value.value()).as_ref().to_vec());
        Ok((key, value))
    };
    table.iter()?.map(bytes).collect()
}

fn read_own<K: Key + 'static, V: Value + 'static>(
    transaction: &WriteTransaction,
    name: &str,
    key: &[u8],
) -> Found {
    value_of(&transaction.open_table(TableDefinition::<K, V>::new(name))?, key)
}

fn put<K: Key + 'static, V: Value + 'static>(
    transaction: &WriteTransaction,
    name: &str,
    key: &[u8],
    value: &[u8],
) -> Result<(), StoreError> {
    let mut table = transaction.open_table(TableDefinition::<K, V>::new(name))?;
    table.insert(K::from_bytes(key), V::from_bytes(value))?;
    Ok(())
}

fn remove<K: Key + 'static, V: Value + 'static>(
    transaction: &WriteTransaction,
    name: &str,
    key: &[u8],
) -> Result<(), StoreError> {
    transaction.open_table(TableDefinition::<K, V>::new(name))?.remove(K::from_bytes(key))?;
    Ok(())
}

fn drop_table(transaction: &WriteTransaction, name: &str) -> Result<(), StoreError> {
    let named: Vec<_> = transaction.list_tables()?.filter(|table| table.name() == name).collect();
    for table in named {
        transaction.delete_table(table)?;
    }
    Ok(())
}

/// Whether a key and a value are such as the table has: redb takes that for granted.
fn check(table: Table, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
    let (is_key, length) = match table.form {
        Form::TextToBytes => (std::str::from_utf8(key).is_ok(), None),
        Form::TextToU32 => (std::str::from_utf8(key).is_ok(), Some(4)),
        Form::TextToU64 => (std::str::from_utf8(key).is_ok(), Some(8)),
        Form::TextToHash => (std::str::from_utf8(key).is_ok(), Some(16)),
        Form::NumberToBytes => (key.len() == 8, None),
        Form::BytesToNothing => (true, Some(0)),
    };
    let is_value = value.is_none_or(|value| length.is_none_or(|length| value.len() == length));
    if is_key && is_value {
        Ok(())
    } else {
        Err(format!("the table {} holds no such thing", table.name).into())
    }
}

/// A table of this prefix: with different prefixes, databases in one database.
fn name_of(prefix: &str, table: Table) -> String {
    [prefix, table.name].concat()
}

/// [`Store::read`] of the tables with a prefix.
pub(crate) fn read_in(transaction: &ReadTransaction, prefix: &str, table: Table, key: &[u8]) -> Found {
    check(table, key, None)?;
    typed!(table.form, read(transaction, &name_of(prefix, table), key))
}

/// [`Store::scan`] of the tables with a prefix.
pub(crate) fn scan_in(
    transaction: &ReadTransaction,
    prefix: &str,
    table: Table,
) -> Result<Vec<KeyValue>, StoreError> {
    typed!(table.form, scan(transaction, &name_of(prefix, table)))
}

/// The value that a transaction sees in a table of the form [`Form::TextToBytes`].
pub(crate) fn read_own_text(transaction: &WriteTransaction, table: Table, key: &str) -> Found {
    read_own::<&str, &[u8]>(transaction, table.name, key.as_bytes())
}

/// [`Store::write`] to the tables with a prefix. Redb has it on stable storage when it is committed.
pub(crate) fn write_in(
    transaction: WriteTransaction,
    prefix: &str,
    batch: &Batch,
) -> Result<bool, StoreError> {
    for expected in &batch.expected {
        let (form, name) = (expected.table.form, name_of(prefix, expected.table));
        check(expected.table, &expected.key, None)?;
        if typed!(form, read_own(&transaction, &name, &expected.key))? != expected.value {
            transaction.abort()?;
            return Ok(false);
        }
    }
    for change in &batch.changes {
        match change {
            Change::Put { table, key, value } => {
                check(*table, key, Some(value))?;
                typed!(table.form, put(&transaction, &name_of(prefix, *table), key, value))?;
            }
            Change::Remove { table, key } => {
                check(*table, key, None)?;
                typed!(table.form, remove(&transaction, &name_of(prefix, *table), key))?;
            }
            Change::Drop { table } => drop_table(&transaction, &[prefix, table].concat())?,
        }
    }
    transaction.commit()?;
    Ok(true)
}

impl Store for RedbStore {
    fn read(&self, table: Table, key: &[u8]) -> Found {
        read_in(&self.0.begin_read()?, "", table, key)
    }

    fn scan(&self, table: Table) -> Result<Vec<KeyValue>, StoreError> {
        scan_in(&self.0.begin_read()?, "", table)
    }

    fn write(&self, batch: &Batch) -> Result<bool, StoreError> {
        write_in(self.0.begin_write()?, "", batch)
    }
}
